//! A notebook's way to Ward from a command: the same as any command's, through the socket or within
//! this process.

use std::rc::Rc;

use axum::body::{Body, to_bytes};
use axum::http::{self, Response, header};
use futures_util::StreamExt as _;
use runtime_native::{Answer, Events, Happened, Http, Request};

use crate::client::{Client, Events as Told};

/// The largest answer that is taken.
const MAX_ANSWER: usize = 256 << 20;

/// A command's client, as a notebook's store uses it.
#[derive(Clone)]
pub(super) struct Way(pub(super) Rc<Client>);

impl Way {
    async fn send(&self, asked: Request<'_>) -> anyhow::Result<Response<Body>> {
        let mut request = http::Request::builder()
            .method(asked.method)
            .uri(&asked.path);
        if let Some(token) = asked.runtime {
            request = request.header("x-ward-runtime", token);
        }
        if let Some(content_type) = asked.content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        self.0.request(request.body(Body::from(asked.body))?).await
    }
}

impl Http for Way {
    async fn call(&self, asked: Request<'_>) -> Result<Answer, String> {
        let response = self.send(asked).await;
        whole(response.map_err(|error| format!("{error:#}"))?).await
    }

    async fn follow(&self, path: &str) -> Result<Result<Events, Answer>, String> {
        let asked = Request {
            method: "GET",
            path: path.to_owned(),
            ..Request::default()
        };
        let response = self.send(asked).await;
        let response = response.map_err(|error| format!("{error:#}"))?;
        if !response.status().is_success() {
            return Ok(Err(whole(response).await?));
        }
        let told = Told::of(response);
        let events = futures_util::stream::unfold(told, |mut told| async {
            let next = match told.next().await {
                Ok(Some(event)) => Ok(Happened {
                    id: event.id,
                    data: event.data.to_string(),
                }),
                Ok(None) => return None,
                Err(error) => Err(format!("{error:#}")),
            };
            Some((next, told))
        });
        Ok(Ok(events.boxed_local()))
    }
}

async fn whole(response: Response<Body>) -> Result<Answer, String> {
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), MAX_ANSWER).await;
    let body = body.map_err(|error| error.to_string())?.to_vec();
    Ok(Answer { status, body })
}
