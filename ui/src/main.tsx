import { createRoot } from "react-dom/client";
import { App } from "./components/App";
import { applyTheme } from "./model/settings";
import "./style.css";

applyTheme();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
