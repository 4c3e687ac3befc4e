addEventListener("message", ({ source, ports: [port] }) => {
  if (source !== parent || !port) return;
  const root = document.documentElement;
  const tell = () => port.postMessage({ height: Math.ceil(document.body.getBoundingClientRect().height) });
  const show = (html) => {
    const shown = new DOMParser().parseFromString(html, "text/html");
    // They could only lead this frame away from what it shows.
    for (const one of shown.querySelectorAll("base, embed, frame, iframe, link, meta, object, script")) one.remove();
    document.body.replaceChildren(...shown.head.children, ...shown.body.childNodes);
  };
  port.onmessage = ({ data }) => {
    if (data.theme !== undefined) root.dataset.theme = data.theme;
    if (data.html !== undefined) show(data.html);
    tell();
  };
  addEventListener("click", (event) => event.target.closest?.("a, area") && event.preventDefault(), true);
  new ResizeObserver(tell).observe(document.body);
}, { once: true });
