//! The operator's page by raw HTTP: what it serves, who may do what there, and that other pages read and change nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::support;
use support::{Bench, Served, connect, post, post_to, tool_call};

/// An answer of the page.
struct PageAnswer {
    status: u16,
    head: String,
    body: String,
}

impl PageAnswer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self
            .head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        lines.next().map(|(_, value)| value.trim())
    }
}

/// Sends a request with exactly these headers beside its host and length.
fn request(served: &Served, method: &str, path: &str, headers: &str, body: &str) -> PageAnswer {
    let host = served.host();
    request_as(served, &host, method, path, headers, body)
}

fn request_as(
    served: &Served,
    host: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> PageAnswer {
    let (mut stream, _) = connect(served);
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(body.as_bytes());
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    PageAnswer {
        status: head
            .split(' ')
            .nth(1)
            .map_or(0, |code| code.parse().unwrap()),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

const SAME_ORIGIN: &str = "Sec-Fetch-Site: same-origin\r\n";

/// Headers of a script of the page itself.
fn own(served: &Served) -> String {
    format!(
        "{SAME_ORIGIN}Origin: http://{}\r\nContent-Type: application/json\r\nSteadyhand-Page: 1\r\n",
        served.host()
    )
}

fn state(served: &Served) -> Value {
    let answer = request(served, "GET", "/page/state", SAME_ORIGIN, "");
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

/// A browser that has logged in.
struct LoggedIn<'a> {
    served: &'a Served,
    cookie: String,
    secret: String,
}

impl<'a> LoggedIn<'a> {
    fn with(served: &'a Served, token: &str) -> Result<Self, PageAnswer> {
        let body = json!({ "token": token }).to_string();
        let answer = request(served, "POST", "/page/login", &own(served), &body);
        if answer.status != 200 {
            return Err(answer);
        }
        let cookie = answer.header("set-cookie").unwrap().to_owned();
        for part in ["HttpOnly", "SameSite=Strict", "Path=/page"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        Ok(Self {
            served,
            cookie: cookie.split(';').next().unwrap().to_owned(),
            secret: answer.json()["secret"].as_str().unwrap().to_owned(),
        })
    }

    fn headers(&self, command: &str) -> String {
        format!(
            "{SAME_ORIGIN}Origin: http://{}\r\nContent-Type: application/json\r\nSteadyhand-Page: {}\r\nSteadyhand-Command: {command}\r\nCookie: other=1; {}\r\n",
            self.served.host(),
            self.secret,
            self.cookie
        )
    }

    fn operate(&self, command: &str, verb: &Value) -> PageAnswer {
        let headers = self.headers(command);
        request(
            self.served,
            "POST",
            "/page/operate",
            &headers,
            &verb.to_string(),
        )
    }

    fn read(&self, path: &str) -> PageAnswer {
        request(self.served, "GET", path, &self.headers("read"), "")
    }
}

/// The code that `steadyhand page` prints.
fn login_code(bench: &Bench) -> String {
    let printed = bench.run(&["page"]);
    assert!(printed.status.success(), "{printed:?}");
    let printed = String::from_utf8(printed.stdout).unwrap();
    let (_, rest) = printed
        .split_once(" and type ")
        .expect("an address and a code");
    let code = rest.split([' ', '.']).next().unwrap();
    code.to_owned()
}

/// Waits until the page's state is so.
fn until(served: &Served, is_so: impl Fn(&Value) -> bool) -> Value {
    support::until("as expected", || state(served), is_so)
}

#[test]
fn its_files_come_whole_and_with_what_a_browser_must_keep_to() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let page = request(&served, "GET", "/", "", "");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "script-src 'self';",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("access-control-allow-origin"), None);
    let mut files: Vec<String> = Vec::new();
    let mut texts = vec![page.body.clone()];
    while let Some(text) = texts.pop() {
        let named = text.split('"').filter_map(|quoted| {
            let name = quoted
                .strip_prefix("./")
                .or(quoted.strip_prefix("/page/"))?;
            let is_file = name.ends_with(".js") || name.ends_with(".css") || name.ends_with(".svg");
            is_file.then(|| format!("/page/{name}"))
        });
        for file in named.collect::<Vec<_>>() {
            if files.contains(&file) {
                continue;
            }
            let answer = request(&served, "GET", &file, SAME_ORIGIN, "");
            assert_eq!(answer.status, 200, "{file}");
            let tag = format!("If-None-Match: {}\r\n", answer.header("etag").unwrap());
            assert_eq!(
                request(&served, "GET", &file, &tag, "").status,
                304,
                "{file}"
            );
            texts.push(answer.body);
            files.push(file);
        }
    }
    assert!(files.len() > 8, "{files:?}");
}

#[test]
fn without_a_login_it_shows_and_stops_and_does_nothing_else() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let observed = state(&served);
    assert_eq!(
        observed["arms"][0]["joints"].as_array().unwrap().len(),
        5,
        "{observed}"
    );
    for path in [
        "/page/jobs",
        "/page/pending",
        "/page/scenes",
        "/page/session",
        "/page/jobs/job-1/plan.png",
    ] {
        let answer = request(&served, "GET", path, SAME_ORIGIN, "");
        assert_eq!(answer.status, 401, "{path}: {}", answer.body);
    }
    let headers = format!("{}Steadyhand-Command: 1\r\n", own(&served));
    let refused = request(
        &served,
        "POST",
        "/page/operate",
        &headers,
        r#"{"verb":"disable"}"#,
    );
    assert_eq!(refused.status, 401, "{}", refused.body);
    let sensed = request(&served, "POST", "/page/sense", &headers, "{}");
    assert_eq!(sensed.status, 401, "{}", sensed.body);
    assert_eq!(
        state(&served)["arms"][0]["may_move"],
        true,
        "it was not disabled"
    );

    let stroke = std::thread::scope(|scope| {
        let host = served.host();
        let draw = scope
            .spawn(move || post_to(&host, "", &tool_call("stroke", &json!({"scene": "short"}))));
        until(&served, |observed| observed["arms"][0]["state"] == "moving");
        let stopped = request(&served, "POST", "/page/stop", &own(&served), "");
        assert_eq!(stopped.status, 200, "{}", stopped.body);
        let reply = stopped.json();
        assert_eq!(reply["verified"], true, "{reply}");
        let arm = &reply["arms"][0];
        assert_eq!(arm["name"], state(&served)["arms"][0]["name"], "{reply}");
        assert!(arm["stop"]["first_frame_ms"].is_number(), "{reply}");
        assert!(arm["stop"]["standstill_ms"].is_number(), "{reply}");
        draw.join().unwrap().1
    });
    assert_eq!(
        stroke["result"]["structuredContent"]["success"], false,
        "{stroke}"
    );
    let latched = state(&served)["arms"][0]["latched"].clone();
    assert!(latched.is_string(), "{latched}");
    let (_, reset) = post(&served, "", &tool_call("reset", &json!({})));
    let reset = &reset["result"]["structuredContent"];
    assert_eq!(
        reset["success"], false,
        "what a person stopped, a planner does not reset: {reset}"
    );
}

#[test]
fn a_plain_form_stops_before_any_script_is_there() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let headers = format!(
        "{SAME_ORIGIN}Origin: http://{}\r\nContent-Type: application/x-www-form-urlencoded\r\n",
        served.host()
    );
    let stopped = request(&served, "POST", "/page/estop", &headers, "");
    assert_eq!(stopped.status, 200, "{}", stopped.body);
    assert!(
        stopped
            .header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    assert!(
        stopped.body.contains("<h1>Stopped</h1>"),
        "{}",
        stopped.body
    );
    let latched = state(&served)["arms"][0]["latched"].clone();
    assert!(latched.as_str().unwrap().contains("emergency"), "{latched}");
}

#[test]
fn a_hostile_page_reads_nothing_and_changes_nothing() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let host = served.host();
    let (name, port) = host.split_once(':').unwrap();
    let next = format!("{name}:{}", port.parse::<u32>().unwrap() ^ 1);
    let from = |site: &str, origin: Option<&str>| {
        let origin = origin.map(|origin| format!("Origin: {origin}\r\n"));
        format!(
            "Sec-Fetch-Site: {site}\r\n{}Content-Type: text/plain\r\n",
            origin.unwrap_or_default()
        )
    };
    let evil = "http://evil.example";
    let other_port = format!("http://{next}");
    // A form and a fetch of another site, and of another port of this host; an old browser; a program that says nothing.
    let commands = [
        from("cross-site", Some(evil)),
        from("same-site", Some(&other_port)),
        from("same-origin", Some(&other_port)),
        from("same-origin", Some("null")),
        from("same-origin", None),
        from("none", Some(&format!("http://{host}"))),
        format!(
            "Origin: http://{host}\r\nContent-Type: application/json\r\nSteadyhand-Page: 1\r\n"
        ),
        String::new(),
    ];
    for headers in &commands {
        for path in [
            "/page/stop",
            "/page/estop",
            "/page/operate",
            "/page/sense",
            "/page/login",
            "/page/logout",
        ] {
            let answer = request(&served, "POST", path, headers, r#"{"verb":"disable"}"#);
            assert_eq!(answer.status, 403, "{path} {headers}: {}", answer.body);
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    // Streams and fetches name no origin when they only read.
    let reads = [
        from("cross-site", None),
        from("same-site", None),
        from("none", None),
        String::new(),
    ];
    for headers in &reads {
        for path in ["/page/state", "/page/events", "/page/session", "/page/jobs"] {
            let answer = request(&served, "GET", path, headers, "");
            assert_eq!(answer.status, 403, "{path} {headers}: {}", answer.body);
            assert!(!answer.body.contains("joints"), "{}", answer.body);
        }
    }
    // Its own name made to resolve to this machine.
    for path in ["/", "/page/state", "/page/events"] {
        let answer = request_as(&served, "evil.example", "GET", path, SAME_ORIGIN, "");
        assert_eq!(answer.status, 403, "{path}: {}", answer.body);
    }
    let rebound = format!("{SAME_ORIGIN}Origin: {evil}\r\n");
    let answer = request_as(&served, "evil.example", "POST", "/page/stop", &rebound, "");
    assert_eq!(answer.status, 403, "{}", answer.body);
    // A preflight gets no leave, and GET commands nothing.
    assert!(
        request(
            &served,
            "OPTIONS",
            "/page/operate",
            &from("cross-site", Some(evil)),
            ""
        )
        .status
            >= 400
    );
    assert_eq!(
        request(&served, "GET", "/page/stop", SAME_ORIGIN, "").status,
        405
    );
    let arm = &state(&served)["arms"][0];
    assert_eq!(arm["stops_done"], 0, "{arm}");
    assert_eq!(arm["may_move"], true, "{arm}");
}

#[test]
fn a_code_from_this_machine_lets_an_operator_in_once() {
    let bench = Bench::new();
    let served = bench.serve(&["--state", &bench.state()]);
    let code = login_code(&bench);
    let page = LoggedIn::with(&served, &code).ok().expect("let in");
    let again = LoggedIn::with(&served, &code)
        .err()
        .expect("a code opens once");
    assert_eq!(again.status, 401, "{}", again.body);
    assert_eq!(page.read("/page/session").json()["role"], "operator");

    let disabled = page.operate("one", &json!({"verb": "disable"}));
    assert_eq!(disabled.json()["done"], true, "{}", disabled.body);
    assert_eq!(state(&served)["arms"][0]["may_move"], false);
    let twice = page.operate("one", &json!({"verb": "enable", "scene": "short"}));
    assert_eq!(twice.status, 409, "{}", twice.body);
    assert_eq!(state(&served)["arms"][0]["may_move"], false);
    let enabled = page.operate(
        "two",
        &json!({"verb": "enable", "scene": "short", "for_s": 60}),
    );
    assert_eq!(enabled.json()["done"], true, "{}", enabled.body);
    let code = page.operate("three", &json!({"verb": "page_login"}));
    assert_eq!(
        code.json()["done"],
        false,
        "a page makes no code: {}",
        code.body
    );

    // The cookie, which other ports of this host can see, is only half of the key.
    let stolen = LoggedIn {
        secret: "1".to_owned(),
        cookie: page.cookie.clone(),
        served: &served,
    };
    assert_eq!(
        stolen.operate("four", &json!({"verb": "disable"})).status,
        401
    );
    assert_eq!(stolen.read("/page/jobs").status, 401);
    let left = request(&served, "POST", "/page/logout", &page.headers("five"), "{}");
    assert_eq!(left.status, 200, "{}", left.body);
    assert_eq!(page.operate("six", &json!({"verb": "disable"})).status, 401);

    let audit = bench.path("state").join("audit.log");
    let audit = std::fs::read_to_string(audit).unwrap();
    assert!(audit.contains("(page): disable"), "{audit}");
    assert!(audit.contains("(page): logged in"), "{audit}");
}

#[test]
fn a_session_has_the_role_of_its_token_and_ends_with_it() {
    let bench = Bench::new();
    let state_folder = bench.state();
    let at = ["--state", state_folder.as_str()];
    let token = |what: &[&str]| {
        let done = bench.run(&[&["token"], what, &at[..]].concat());
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    let planner = token(&["add", "planner", "--role", "planner"]);
    let anna = token(&["add", "anna", "--role", "operator"]);
    let served = bench.serve(&at);
    let wrong = LoggedIn::with(&served, &format!("{anna}x"))
        .err()
        .expect("no such token");
    assert_eq!(wrong.status, 401, "{}", wrong.body);
    let viewing = LoggedIn::with(&served, &planner).ok().expect("let in");
    assert_eq!(viewing.read("/page/jobs").status, 200);
    // Records of a job, and no others.
    for word in ["operator", "logged", "job-99"] {
        let records = viewing.read(&format!("/page/jobs/{word}/audit"));
        assert_eq!(records.status, 404, "{word}: {}", records.body);
    }
    let refused = viewing.operate("one", &json!({"verb": "disable"}));
    assert_eq!(refused.status, 403, "{}", refused.body);
    let page = LoggedIn::with(&served, &anna).ok().expect("let in");
    let session = page.read("/page/session").json();
    assert_eq!(
        (&session["name"], &session["role"]),
        (&json!("anna"), &json!("operator"))
    );
    // A page says so before a login that nobody uses ends.
    let ends_in_s = session["ends_in_s"].as_u64().unwrap();
    assert!((1..=30 * 60).contains(&ends_in_s), "{session:#}");
    token(&["revoke", "anna"]);
    let refused = page.operate("one", &json!({"verb": "disable"}));
    assert_eq!(refused.status, 401, "{}", refused.body);
    assert_eq!(page.read("/page/jobs").status, 401);
    assert_eq!(
        state(&served)["arms"][0]["may_move"],
        true,
        "nothing was disabled"
    );
    // A stop needs no role, wherever it is sent.
    let refused = viewing.operate("two", &json!({"verb": "stop"}));
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("were stopped"), "{}", refused.body);
}

#[test]
fn no_token_is_taken_in_plain_text_from_elsewhere() {
    let bench = Bench::new();
    let served = bench.serve(&["--host", "arm.example"]);
    let (_, port) = served.url.rsplit_once(':').unwrap();
    let host = format!("arm.example:{}", port.split('/').next().unwrap());
    let headers = format!(
        "{SAME_ORIGIN}Origin: http://{host}\r\nContent-Type: application/json\r\nSteadyhand-Page: 1\r\n"
    );
    let code = json!({"token": login_code(&bench)}).to_string();
    let refused = request_as(&served, &host, "POST", "/page/login", &headers, &code);
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("unencrypted"), "{}", refused.body);
    let stopped = request_as(&served, &host, "POST", "/page/stop", &headers, "");
    assert_eq!(stopped.json()["verified"], true, "{}", stopped.body);
}

/// Memory of a process.
fn resident_kb(served: &Served) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.child.0.id())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn fifty_pages_follow_and_a_drawing_does_not_notice() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    state(&served);
    let before_kb = resident_kb(&served);
    let mut streams: Vec<_> = (0..50).map(|_| connect(&served)).collect();
    for (stream, host) in &mut streams {
        let head = format!("GET /page/events HTTP/1.1\r\nHost: {host}\r\n{SAME_ORIGIN}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
    }
    let mut received_texts: Vec<String> = vec![String::new(); streams.len()];
    let mut bytes = [0_u8; 64 * 1024];
    for ((stream, _), received) in streams.iter_mut().zip(&mut received_texts) {
        while !(received.contains("event: sheet") && received.contains("event: state")) {
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "the stream ended: {received}");
            received.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        assert!(received.contains("text/event-stream"), "{received}");
    }
    let grown_kb = resident_kb(&served).saturating_sub(before_kb);
    assert!(grown_kb < 10 * 1024, "{grown_kb} kB for fifty pages");
    // Nobody reads the streams any more, and the arm draws all the same.
    let (_, drawn) = post(
        &served,
        "",
        &tool_call("stroke", &json!({"scene": "short"})),
    );
    assert_eq!(
        drawn["result"]["structuredContent"]["success"], true,
        "{drawn}"
    );
    let (_, preview) = post(&served, "", &tool_call("sense", &json!({"debug": true})));
    let bus = &preview["result"]["structuredContent"]["bus"];
    let servos = bus["servos"].as_array().unwrap();
    assert!(servos.iter().all(|servo| servo["blind"] == 0), "{bus}");
    let observed = state(&served);
    let arm = &observed["arms"][0];
    assert_eq!(arm["job"]["state"], "reached", "{arm}");
}

#[test]
fn an_open_page_keeps_no_node_from_its_end() {
    let bench = Bench::new();
    let mut served = bench.serve(&[]);
    let (mut stream, host) = connect(&served);
    let head = format!("GET /page/events HTTP/1.1\r\nHost: {host}\r\n{SAME_ORIGIN}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = [0_u8; 1024];
    assert!(stream.read(&mut bytes).unwrap() > 0);
    assert_eq!(served.child.terminate(), Some(0));
    let mut rest = Vec::new();
    let ended = stream.read_to_end(&mut rest);
    assert!(ended.is_ok(), "the stream was told its end: {ended:?}");
}

#[test]
fn a_waiting_plan_is_shown_and_refused_on_the_page() {
    let bench = Bench::new();
    std::fs::write(bench.path("node.toml"), "before_drawing = \"person\"\n").unwrap();
    let config = bench.path("node.toml");
    let state_folder = bench.state();
    let at = [
        "--config",
        config.to_str().unwrap(),
        "--state",
        &state_folder,
    ];
    let served = bench.serve(&at);
    let page = LoggedIn::with(&served, &login_code(&bench))
        .ok()
        .expect("let in");
    let message = std::thread::scope(|scope| {
        let host = served.host();
        let draw = scope
            .spawn(move || post_to(&host, "", &tool_call("stroke", &json!({"scene": "short"}))));
        until(&served, |observed| observed["waiting"] == 1);
        let pending = page.read("/page/pending").json();
        let plan = &pending[0];
        let text = plan["words"].as_str().unwrap();
        assert!(text.contains("2 strokes"), "{text}");
        assert!(
            !text.contains(&state_folder),
            "a path of the machine: {text}"
        );
        let job = plan["job"].as_str().unwrap();
        let picture = plan["pictures"][0].as_str().unwrap();
        let shown = page.read(&format!("/page/jobs/{job}/{picture}"));
        assert_eq!(
            shown.header("content-type"),
            Some("image/png"),
            "{}",
            shown.head
        );
        for elsewhere in [
            format!("/page/jobs/{job}/journal"),
            format!("/page/jobs/{job}/..%2F..%2Faudit.log"),
            format!("/page/jobs/..%2F{job}/{picture}"),
            format!("/page/jobs/%2E%2E/{picture}"),
        ] {
            assert_eq!(page.read(&elsewhere).status, 404, "{elsewhere}");
        }
        let other = page.operate("one", &json!({"verb": "refuse", "job": job, "plan": "00"}));
        assert_eq!(other.json()["done"], false, "{}", other.body);
        let verdict = json!({"verb": "refuse", "job": job, "plan": plan["plan"]});
        let refused = page.operate("two", &verdict);
        assert_eq!(refused.json()["done"], true, "{}", refused.body);
        draw.join().unwrap().1
    });
    let reply = &message["result"]["structuredContent"];
    assert_eq!(reply["success"], false, "{reply}");
    assert!(
        reply["message"].as_str().unwrap().contains("operator"),
        "{reply}"
    );
    let jobs = page.read("/page/jobs").json();
    assert_eq!(jobs[0]["state"], "refused", "{jobs}");
    assert_eq!(jobs[0]["drawn_mm"], 0.0, "{jobs}");
}

#[test]
fn what_the_page_has_previewed_is_drawn_and_nothing_else() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let page = LoggedIn::with(&served, &login_code(&bench))
        .ok()
        .expect("let in");
    let order = json!({"scene": "short", "arm": null, "design": {
        "source": {"text": {"text": "hi"}},
        "placement": {"size_mm": 20.0, "at_mm": null, "rotate_deg": 10.0, "fits": false}}});
    let offered = page.operate("one", &json!({"verb": "draw", "order": order}));
    let offer = &offered.json()["data"];
    assert!(offer["plan"].is_string(), "{}", offered.body);
    assert_eq!(
        state(&served)["arms"][0]["job"],
        Value::Null,
        "a preview is no job"
    );
    let assent = |plan: &Value| json!({"revision": offer["revision"], "plan": plan, "duration_s": offer["duration_s"], "orders_seen": offer["orders_seen"]});
    let draw = |command: &str, assent: &Value| {
        page.operate(
            command,
            &json!({"verb": "draw", "order": order, "assent": assent}),
        )
    };
    let other = draw("two", &assent(&json!("00000000000000000000000000000000")));
    let ended = until(&served, |observed| {
        observed["arms"][0]["job"]["is_over"] == true
    });
    assert_eq!(
        ended["arms"][0]["job"]["state"], "refused",
        "{} {ended}",
        other.body
    );
    let begun = draw("three", &assent(&offer["plan"]));
    assert_eq!(begun.json()["done"], true, "{}", begun.body);
    let drawn = until(&served, |observed| {
        observed["arms"][0]["job"]["state"] == "reached"
    });
    let length_mm = offer["pen_down_mm"].as_f64().unwrap();
    let jobs = page.read("/page/jobs").json();
    let drawn_mm = jobs[0]["drawn_mm"].as_f64().unwrap();
    assert!(
        (drawn_mm - length_mm).abs() < 0.1,
        "{drawn_mm} of {length_mm} mm: {drawn}"
    );
    assert_eq!(jobs[0]["plan_hash"], offer["plan"], "{jobs}");
    // An order that came after what was shown stands.
    let disabled = page.operate("four", &json!({"verb": "disable"}));
    assert_eq!(disabled.json()["done"], true, "{}", disabled.body);
    let late = draw("five", &assent(&offer["plan"]));
    assert_eq!(late.json()["done"], false, "{}", late.body);
    assert_eq!(state(&served)["arms"][0]["enabled"], "nothing");
}
