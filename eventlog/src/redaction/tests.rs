//! Promises of the redactor.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const SECRET: &str = "s3cr3t-M4rker";

fn text(input: &str) -> String {
    Redactor::new().text(input).into_inner()
}

fn known(secret: &str) -> Redactor {
    Redactor::with_known([secret.to_owned()])
}

#[test]
fn only_the_secret_part_of_a_text_is_masked() {
    for (input, expected) in [
        ("Authorization: Bearer s3cr3t-M4rker", "Authorization: Bearer [redacted]"),
        ("authorization: Basic dTpw\r\nHost: x", "authorization: Basic [redacted]\r\nHost: x"),
        (r#"Authorization: Digest username="u", response="abc""#, "Authorization: [redacted]"),
        (r#"{"Authorization":"Bearer abc","x":1}"#, r#"{"Authorization":"Bearer [redacted]","x":1}"#),
        (r#"{"authorization": "Custom abc def","x":1}"#, r#"{"authorization": "[redacted]","x":1}"#),
        ("got bearer abcd1234, then left", "got bearer [redacted], then left"),
        ("Basic dXNlcjpwYXNz is sent", "Basic [redacted] is sent"),
        ("https://u:p@shop.example/a?x=1", "https://[redacted]@shop.example/a?x=1"),
        ("https://u:p@q@shop.example/", "https://[redacted]@shop.example/"),
        ("https://x/cb?code=abc&state=7", "https://x/cb?code=[redacted]&state=7"),
        ("https://x/#id_token=abc&token_type=y", "https://x/#id_token=[redacted]&token_type=y"),
        ("https://x/?a=1&sig=ab%2Fc#top", "https://x/?a=1&sig=[redacted]#top"),
        ("grant_type=x&refresh_token=abc&n=1", "grant_type=x&refresh_token=[redacted]&n=1"),
        ("user[password]=abc&user[name]=n", "user[password]=[redacted]&user[name]=n"),
        ("https://x/?session_state=a.b&y=2", "https://x/?session_state=[redacted]&y=2"),
        (
            "https://x/?to=https%3A%2F%2Fy%2F%3Fcode%3Dabc%26n%3D1&z=1",
            "https://x/?to=https%3A%2F%2Fy%2F%3Fcode%3D[redacted]%26n%3D1&z=1",
        ),
        ("?to=https%3A%2F%2Fu%3Ap%40host%2F", "?to=https%3A%2F%2F[redacted]%40host%2F"),
        ("Cookie: sid=abc; theme=dark\nHost: x", "Cookie: [redacted]\nHost: x"),
        ("set-cookie: sid=abc; HttpOnly", "set-cookie: [redacted]"),
        ("document.cookie = \"sid=abc\";", "document.cookie = \"[redacted]\";"),
        (
            "text \"Set-Cookie:\"\n  text \"sess=a\\\"b\"\nlink \"x\"",
            "text \"Set-Cookie:\"\n  text \"[redacted]\\\"b\"\nlink \"x\"",
        ),
        (
            "cell \"Bearer\"\n cell \"abcd1234\"\n cell \"cookie:\"\n  cell \"a=b; c=d\"\n cell \"authorization:\"\ncell \"bearer x1\"",
            "cell \"Bearer\"\n cell \"[redacted]\"\n cell \"cookie:\"\n  cell \"[redacted]\"\n cell \"authorization:\"\ncell \"bearer [redacted]\"",
        ),
        ("ws://127.0.0.1:9222/devtools/page/AB now", "ws://[redacted] now"),
        ("vnc://10.0.0.1:5900", "vnc://[redacted]"),
        (r#"{"password":"a\"b","n":1}"#, r#"{"password":"[redacted]","n":1}"#),
        (r#""{\"api_key\":\"abc\",\"n\":1}""#, r#""{\"api_key\":\"[redacted]\",\"n\":1}""#),
        ("password: hunter2 is wrong", "password: [redacted] is wrong"),
        ("API key: abcd-efgh", "API key: [redacted]"),
        ("X-Api-Key: abcd", "X-Api-Key: [redacted]"),
        ("PASSWORD = 'it is'", "PASSWORD = '[redacted]'"),
        ("my ghp_0123456789abcdefABCD key", "my [redacted] key"),
        ("AKIAIOSFODNN7EXAMPLE.", "[redacted]."),
        ("bst_0a1b2c3d4e5f6g7h8j9k", "[redacted]"),
        ("sk-proj-abcdEFGH1234ijkl", "[redacted]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln_x", "[redacted]"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\nx",
            "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----\nx",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIB", "-----BEGIN PRIVATE KEY-----[redacted]"),
    ] {
        assert_eq!(text(input), expected, "{input}");
    }
}

#[test]
fn harmless_text_stays_as_it_is() {
    for input in [
        "- textbox \"Password:\" [ref=e5]\n- button \"Sign in\" [ref=e6]",
        "- textbox \"Enter password: \" [ref=e5]",
        "- textbox \"Password\": [ref=e5]",
        r#"["Password:","Sign in","Token:","x"]"#,
        "exit code=1, status code: 404, error code=E1",
        "missing bearer token; Basic authentication is off",
        "WWW-Authenticate: Bearer realm=\"x\"",
        "https://shop.example/@name?page=2&key=name#top",
        "Session: 10:00 to 11:00 in room 5",
        "Cookie: preferences",
        "text \"Cookie:\"\ne4 button \"Accept all\"\ntext \"Authorization:\"\ntext \"Bearer\"\nlink \"tokens\"",
        "if (token == null) { password => 1 }",
        "task-list-of-the-disk-sk-folding-cubes-inside",
        "Unicode: 東京 \u{1F600} e\u{301}",
        "",
    ] {
        assert_eq!(text(input), input);
    }
}

#[test]
fn json_is_masked_at_any_depth_by_key_and_by_content() {
    let value = json!({
        "a": [{ "b": { "accessToken": SECRET, "max_tokens": 5, "hasPassword": true, "key": "Enter" } }],
        "Set-Cookie": ["sid=abc", { "x": 7 }],
        "pin": 1234,
        "password": "",
        "code": "task_timeout",
        "session": "abc",
        "url": "https://x/?token=abc&y=1",
        "https://u:p@x/": null,
    });
    let expected = json!({
        "a": [{ "b": { "accessToken": MASK, "max_tokens": 5, "hasPassword": true, "key": "Enter" } }],
        "Set-Cookie": [MASK, { "x": MASK }],
        "pin": MASK,
        "password": "",
        "code": "task_timeout",
        "session": MASK,
        "url": "https://x/?token=[redacted]&y=1",
        "https://[redacted]@x/": null,
    });
    assert_eq!(Redactor::new().json(value).into_inner(), expected);
}

#[test]
fn two_keys_that_become_one_keep_both_values() {
    let value = json!({ "?token=a": 1, "?token=b": 2 });
    let masked = Redactor::new().json(value).into_inner();
    assert_eq!(masked, json!({ "?token=[redacted]": 1, "?token=[redacted] 2": 2 }));
}

#[test]
fn json_of_any_depth_ends_neither_the_program_nor_the_masking() {
    let mut value = json!(SECRET);
    for _ in 0..2_000 {
        value = json!([value]);
    }
    assert!(!Redactor::new().json(value).into_inner().to_string().contains(SECRET));
}

#[test]
fn a_known_secret_is_masked_in_every_form_it_comes_back_in() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let secret = "pä ss/w&rd'9\"x";
    let redactor = known(secret);
    let encoded: String = url_encoded(secret);
    for form in [
        secret.to_owned(),
        encoded.clone(),
        encoded.to_lowercase(),
        encoded.replace("%20", "+"),
        encoded.replace('%', "%25"),
        json!(secret).to_string(),
        json!(json!(secret).to_string()).to_string(),
        "pä ss/w&amp;rd&#39;9&quot;x".to_owned(),
    ] {
        let masked = redactor.text(&format!("before {form} after")).into_inner();
        assert!(masked.starts_with("before ") && masked.ends_with(" after"), "{masked}");
        assert!(masked.contains(MASK) && !masked.contains("rd"), "{form} became {masked}");
    }
    for user in ["", "u:", "me:"] {
        let form = STANDARD.encode(format!("{user}{secret}!"));
        assert!(redactor.text(&form).get().contains(MASK), "{form}");
    }
}

fn url_encoded(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}

#[test]
fn overlapping_known_secrets_leave_nothing_of_either() {
    let redactor = Redactor::with_known(["abcdef".to_owned(), "efghij".to_owned()]);
    assert_eq!(redactor.text("1 abcdefghij 2").get(), "1 [redacted] 2");
    let redactor = Redactor::with_known(["abc1".to_owned(), "def2".to_owned()]);
    assert_eq!(redactor.text("1 abc1def2 2").get(), "1 [redacted] 2");
}

#[test]
fn a_short_known_secret_is_masked_only_where_it_stands_alone() {
    assert_eq!(known("a1").text("a1 ba1 (a1)").get(), "[redacted] ba1 ([redacted])");
    assert_eq!(known("  ").text("x  y").get(), "x  y");
    assert_eq!(known("4711").json(json!([47_110, 12])).into_inner(), json!([MASK, 12]));
}

#[test]
fn a_known_secret_that_looks_like_the_mask_does_not_grow_it() {
    assert_eq!(known("redacted").text("x [redacted] y redacted").get(), "x [redacted] y [redacted]");
}

#[test]
fn a_bounded_text_is_cut_between_characters_and_says_so() {
    let redactor = Redactor::new();
    assert_eq!(redactor.bounded_text("short", 5).get(), "short");
    let cut = redactor.bounded_text(&"東".repeat(20), 30).into_inner();
    assert_eq!(cut, "東東東東東東 [truncated]");
    assert_eq!(redactor.bounded_text("12345 token=abcdef and so on", 27).get(), "12345 token= [truncated]");
    assert_eq!(redactor.bounded_text("abcdef", 3).get(), "abc");
}

#[test]
fn json_over_its_limit_is_replaced_and_at_its_limit_kept() {
    let redactor = Redactor::new();
    let at_limit = json!("x".repeat(RESULT_BYTES_MAX - 2));
    assert_eq!(redactor.bounded_json(at_limit.clone(), RESULT_BYTES_MAX).into_inner(), at_limit);
    let over = json!("x".repeat(RESULT_BYTES_MAX - 1));
    assert_eq!(
        redactor.bounded_json(over, RESULT_BYTES_MAX).into_inner(),
        json!({ "truncated": true, "reason": "result_too_large" })
    );
}

#[test]
fn a_hostile_text_is_masked_in_linear_time() {
    // Quadratic code would need minutes for these; the test has no clock, it would just not end.
    for unit in [
        "token=",
        "token=\"",
        "token:[",
        "password:\\\"",
        "ws://",
        "://a@",
        "%3D",
        "a%3D",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "eyJaaaaaaaa.",
        "authorization:",
        "cookie:a=",
        "bearer ",
        "[redacted]",
        "= ",
        "token=\\\\\\",
        "a.",
        "%25",
    ] {
        let masked = text(&unit.repeat(400_000 / unit.len()));
        assert!(!masked.is_empty());
    }
}

/// Pieces that, put together, make both secrets and near misses.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "token",
        "password",
        "code",
        "=",
        ":",
        " ",
        "\"",
        "'",
        "\\",
        "&",
        "?",
        "#",
        "%3D",
        "%26",
        "%25",
        "://",
        "@",
        "/",
        "Bearer ",
        "Authorization: ",
        "Cookie: ",
        "ws://",
        "/devtools/",
        "[",
        "]",
        "[redacted]",
        "redacted",
        "\n",
        "-----BEGIN PRIVATE KEY-----",
        "-----END",
        "eyJhbGciOiJIUzI1",
        ".",
        "ghp_0123456789abcdefABCD",
        "東",
        "\u{1F600}",
        "\0",
        "s3cr3t-M4rker",
        "a",
        "1",
        "=redacted",
        "%2F",
        "basic ",
        "dXNlcjpw",
        "key",
        "sk-",
    ];
    prop_oneof![
        4 => proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(|letter| letter.to_string()),
    ]
}

fn pieces() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn redacting_twice_is_redacting_once(input in pieces(), secret in "[a-z&= %]{1,6}|redacted|\\[|s3cr3t-M4rker") {
        let redactor = Redactor::with_known([secret, "&code".to_owned()]);
        let once = redactor.text(&input).into_inner();
        prop_assert_eq!(redactor.text(&once).into_inner(), once);
    }

    #[test]
    fn a_known_secret_never_stays(before in pieces(), after in pieces()) {
        let masked = known(SECRET).text(&format!("{before}{SECRET}{after}")).into_inner();
        prop_assert!(!masked.contains(SECRET), "{}", masked);
    }

    #[test]
    fn a_token_in_a_query_never_stays_whatever_stands_before(before in pieces(), value in "[A-Za-z0-9._~-]{16,40}") {
        let masked = text(&format!("{before}?page=1&access_token={value}&z=1"));
        prop_assert!(!masked.contains(&value), "{}", masked);
    }

    #[test]
    fn a_bounded_text_keeps_its_limit(input in pieces(), bytes_max in 0usize..80) {
        let cut = known(SECRET).bounded_text(&input, bytes_max).into_inner();
        prop_assert!(cut.len() <= bytes_max);
    }

    #[test]
    fn json_is_masked_as_its_strings_are(key in pieces(), input in pieces()) {
        let redactor = known(SECRET);
        let once = redactor.json(json!({ key: [input] }));
        prop_assert!(!once.get().to_string().contains(SECRET));
        prop_assert_eq!(redactor.json(once.get().clone()), once);
    }
}
