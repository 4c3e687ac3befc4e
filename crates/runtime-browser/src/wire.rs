//! The page's way to Ward, its clock and its disk: given by the page, as an object.

use js_sys::{Promise, Reflect, Uint8Array};
use runtime_core::Unanswered;
use serde_json::Value;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::book::Answer;
use crate::failure::sentence;
use crate::kept::Kept;

#[wasm_bindgen(typescript_custom_section)]
const WIRE: &str = r#"
/** What a page gives a replica: its way to Ward, its clock and its disk. */
export interface Wire {
  /** Asks Ward. Rejects where Ward cannot be reached. */
  call(method: string, path: string, runtime: string | undefined, contentType: string | undefined, body: Uint8Array | undefined): Promise<{ status: number; body: Uint8Array }>;
  sleep(ms: number): Promise<void>;
  /** Keeps this. Rejects where it cannot. */
  keep(base: string | undefined, live: string): Promise<void>;
  /** Something is different. */
  changed(): void;
  /** A runtime session has another token. */
  token(session: string, token: string): void;
}
"#;

#[wasm_bindgen]
extern "C" {
    /// The object that the page gives.
    #[wasm_bindgen(typescript_type = "Wire")]
    pub type Wire;

    #[wasm_bindgen(method, catch)]
    fn call(
        this: &Wire,
        method: &str,
        path: &str,
        runtime: Option<String>,
        content_type: Option<String>,
        body: Option<Uint8Array>,
    ) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method)]
    fn sleep(this: &Wire, ms: f64) -> Promise;

    #[wasm_bindgen(method, catch)]
    fn keep(this: &Wire, base: Option<String>, live: String) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method)]
    pub(crate) fn changed(this: &Wire);

    #[wasm_bindgen(method)]
    pub(crate) fn token(this: &Wire, session: &str, token: &str);
}

/// A request.
#[derive(Default)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'static str,
    pub(crate) path: &'a str,
    /// The token of a runtime session.
    pub(crate) runtime: Option<String>,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) body: Option<&'a [u8]>,
}

/// What came back.
pub(crate) struct Came {
    pub(crate) status: u16,
    pub(crate) bytes: Vec<u8>,
}

impl Came {
    pub(crate) fn answer(&self) -> Answer {
        Answer {
            status: self.status,
            body: serde_json::from_slice(&self.bytes).unwrap_or(Value::Null),
        }
    }

    /// The answer, if it is a good one.
    pub(crate) fn good(self) -> Result<Self, Unanswered> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        let said = self.answer().body["error"].as_str().map(str::to_owned);
        let said = said.unwrap_or_else(|| format!("Ward answered {}.", self.status));
        match self.status {
            408 | 425 | 429 | 500.. => Err(Unanswered::Away(said)),
            _ => Err(Unanswered::Refused(said)),
        }
    }
}

impl Wire {
    /// Asks Ward. An error is that it cannot be reached.
    pub(crate) async fn ask(&self, asked: Asked<'_>) -> Result<Came, String> {
        let promise = self.call(
            asked.method,
            asked.path,
            asked.runtime,
            asked.content_type.map(str::to_owned),
            asked.body.map(Uint8Array::from),
        );
        let promise = promise.map_err(|thrown| sentence(&thrown))?;
        let came = JsFuture::from(promise).await;
        let came = came.map_err(|thrown| sentence(&thrown))?;
        let get = |name: &str| Reflect::get(&came, &name.into()).ok();
        let status = get("status").and_then(|status| status.as_f64());
        let bytes = get("body").and_then(|body| body.dyn_into::<Uint8Array>().ok());
        let (Some(status), Some(bytes)) = (status, bytes) else {
            return Err("The page's wire answered something else than it should.".to_owned());
        };
        // A status has three digits.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it fits"
        )]
        let status = status.clamp(0.0, 999.0) as u16;
        Ok(Came {
            status,
            bytes: bytes.to_vec(),
        })
    }

    /// Waits as long.
    pub(crate) async fn wait(&self, time: std::time::Duration) {
        // A clock that fails is one that does not wait.
        let _ = JsFuture::from(self.sleep(time.as_secs_f64() * 1000.0)).await;
    }

    /// Keeps this; whether it is kept.
    pub(crate) async fn kept(&self, kept: Kept) -> bool {
        match self.keep(kept.base, kept.live) {
            Ok(promise) => JsFuture::from(promise).await.is_ok(),
            Err(_) => false,
        }
    }
}
