use axum::Json;
use axum::routing::get;
use serde_json::json;

use super::*;
use protocol::ErrorKind;

fn settings(text: serde_json::Value) -> Settings {
    serde_json::from_value(text).unwrap()
}

/// Nothing is on this machine.
fn registry(written: serde_json::Value, variables: &[(&str, &str)]) -> Registry {
    let variable = |name: &str| {
        let found = variables.iter().find(|(key, _)| *key == name)?;
        Some(found.1.to_owned())
    };
    Registry::with_local(&settings(written), variable, &[])
}

const KEYS: [(&str, &str); 4] = [
    ("ANTHROPIC_API_KEY", "a"),
    ("GEMINI_API_KEY", "g"),
    ("OPENAI_API_KEY", "o"),
    ("WARD_CHAT_BASE_URL", "http://127.0.0.1:9"),
];

#[tokio::test]
async fn a_models_name_picks_its_provider() {
    let own = json!({"work": {"base_url": "http://127.0.0.1:9/api", "models": ["house-model"]}});
    let registry = registry(own, &KEYS);
    let table = [
        (
            "claude-opus-4-6",
            "anthropic",
            Wire::Anthropic,
            "claude-opus-4-6",
        ),
        ("gemini-3-pro", "gemini", Wire::Gemini, "gemini-3-pro"),
        ("gpt-5.2", "openai", Wire::Responses, "gpt-5.2"),
        ("o3", "openai", Wire::Responses, "o3"),
        (
            "anthropic/some-model",
            "anthropic",
            Wire::Anthropic,
            "some-model",
        ),
        ("gemini/some-model", "gemini", Wire::Gemini, "some-model"),
        ("openai/some-model", "openai", Wire::Responses, "some-model"),
        ("chat/meta/llama-4", "chat", Wire::Chat, "meta/llama-4"),
        ("work/claude-like", "work", Wire::Chat, "claude-like"),
        ("house-model", "work", Wire::Chat, "house-model"),
        ("offline", "offline", Wire::Offline, "offline"),
    ];
    for (asked, provider, wire, model) in table {
        let found = registry.resolve(asked).await.expect(asked);
        let found = (
            found.provider.name().to_owned(),
            found.provider.wire(),
            found.model,
        );
        assert_eq!(
            found,
            (provider.to_owned(), wire, model.to_owned()),
            "{asked}"
        );
    }
}

#[tokio::test]
async fn a_missing_key_is_told_with_its_variable() {
    let registry = registry(
        json!({"work": {"base_url": "http://127.0.0.1:9", "key_variable": "WORK_KEY"}}),
        &[],
    );
    for (model, variable) in [
        ("claude-opus-4-6", "ANTHROPIC_API_KEY"),
        ("gemini/x", "GEMINI_API_KEY"),
        ("o3", "OPENAI_API_KEY"),
        ("work/x", "WORK_KEY"),
    ] {
        let error = registry.resolve(model).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingKey, "{model}");
        assert!(error.to_string().contains(variable), "{error}");
    }
    let error = registry.resolve("chat/x").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "chat cannot be asked: no address is set. Set WARD_CHAT_BASE_URL."
    );
}

#[tokio::test]
async fn a_name_that_says_nothing_is_unknown_and_the_providers_are_named() {
    let registry = registry(json!({}), &KEYS);
    for model in ["", "opus", "elsewhere/model", "anthropic/", "omega"] {
        let error = registry.resolve(model).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownModel, "{model}");
    }
    let error = registry.resolve("opus").await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("anthropic, chat, gemini, openai"),
        "{error}"
    );
}

#[test]
fn offline_is_the_default_until_there_is_a_key_or_the_settings_say_otherwise() {
    assert_eq!(registry(json!({}), &[]).default_model(), "offline");
    assert_eq!(
        registry(json!({}), &[("OPENAI_API_KEY", " ")]).default_model(),
        "offline"
    );
    assert!(
        registry(json!({}), &KEYS)
            .default_model()
            .starts_with("claude-")
    );
    assert_eq!(
        registry(json!({"model": "o3"}), &KEYS).default_model(),
        "o3"
    );
}

#[test]
fn an_address_is_taken_with_and_without_its_version() {
    let table = [
        (Wire::Anthropic, "http://h", "http://h/v1"),
        (Wire::Anthropic, "http://h/v1/", "http://h/v1"),
        (Wire::Anthropic, "http://h/proxy", "http://h/proxy/v1"),
        (Wire::Gemini, "http://h/", "http://h/v1beta"),
        (Wire::Gemini, "http://h/v1", "http://h/v1"),
        (Wire::Responses, "http://h", "http://h/v1"),
        (Wire::Responses, "http://h/v1", "http://h/v1"),
        (Wire::Chat, "http://h/api/paas/v4", "http://h/api/paas/v4"),
    ];
    for (wire, base, expected) in table {
        assert_eq!(versioned(wire, base), expected, "{base}");
    }
}

#[test]
fn a_mistake_in_an_endpoint_is_refused_and_a_key_is_never_shown() {
    let wrong = serde_json::from_value::<Settings>(json!({"work": {"base": "http://h"}}));
    assert!(
        wrong
            .unwrap_err()
            .to_string()
            .contains("unknown field `base`")
    );
    let written = json!({"work": {"base_url": "http://127.0.0.1:9", "key": "secret"}});
    let shown = format!(
        "{:?} {:?}",
        settings(written.clone()),
        registry(written, &[])
    );
    assert!(!shown.contains("secret"), "{shown}");
}

#[tokio::test]
async fn where_a_key_is_that_is_not_taken_is_told() {
    let written = json!({
        "anthropic": {"key": "two words"},
        "openai": {"key_variable": "ELSEWHERE"},
        "work": {"base_url": "http://127.0.0.1:9", "key": "two words", "key_variable": "UNUSED"},
        "home": {"base_url": "http://127.0.0.1:9", "key_variable": "DOOR"},
    });
    let variables = [
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "ELSEWHERE",
        "UNUSED",
        "DOOR",
    ];
    let registry = registry(written, &variables.map(|name| (name, "two words")));
    for (provider, place) in [
        (
            "anthropic",
            "`key` in [providers.anthropic] of the settings",
        ),
        ("gemini", "GEMINI_API_KEY"),
        ("openai", "ELSEWHERE"),
        ("work", "`key` in [providers.work] of the settings"),
        ("home", "DOOR"),
    ] {
        let error = registry
            .resolve(&format!("{provider}/x"))
            .await
            .unwrap_err();
        let expected = format!(
            "{provider} cannot be asked: the key has characters that no key has. Check {place}."
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn all_keys_are_known_wherever_they_come_from_and_whether_or_not_they_are_of_use() {
    let written = json!({
        "anthropic": {"key": "written"},
        "openai": {"key_variable": "ELSEWHERE"},
        "work": {"base_url": "http://127.0.0.1:9", "key_variable": "DOOR"},
        "broken": {"base_url": "no address", "key": "of no use"},
        "open": {"base_url": "http://127.0.0.1:9"},
    });
    let variables = [
        ("ANTHROPIC_API_KEY", "not asked for"),
        ("GEMINI_API_KEY", "usual"),
        ("ELSEWHERE", "named"),
        ("DOOR", "own"),
    ];
    let registry = registry(written, &variables);
    let mut keys: Vec<&str> = registry.keys().collect();
    keys.sort_unstable();
    assert_eq!(keys, ["named", "of no use", "own", "usual", "written"]);
}

#[tokio::test]
async fn a_server_on_this_machine_is_found_by_itself() {
    let models = json!({"object": "list", "data": [{"id": "qwen3:8b", "object": "model"}]});
    let app = axum::Router::new().route("/v1/models", get(move || async { Json(models) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}/v1", gone.local_addr().unwrap());
    drop(gone);

    let local = [("ollama", base.as_str()), ("llamacpp", nobody.as_str())];
    let registry = Registry::with_local(&Settings::default(), |_| None, &local);
    let found = registry.resolve("qwen3:8b").await.unwrap();
    assert_eq!(
        (found.provider.name(), found.model.as_str()),
        ("ollama", "qwen3:8b")
    );
    let list: Vec<(String, Vec<String>, bool)> = registry
        .list()
        .await
        .into_iter()
        .map(|one| (one.provider, one.models, one.unusable.is_none()))
        .collect();
    let row = |name: &str, models: &[&str], usable: bool| {
        (
            name.to_owned(),
            models.iter().map(|&model| model.to_owned()).collect(),
            usable,
        )
    };
    assert_eq!(
        list,
        [
            row("offline", &["offline"], true),
            row("anthropic", &["claude-…"], false),
            row("chat", &["chat/…"], false),
            row("gemini", &["gemini-…"], false),
            row("openai", &["gpt-…"], false),
            row("llamacpp", &[], false),
            row("ollama", &["qwen3:8b"], true),
        ]
    );
}
