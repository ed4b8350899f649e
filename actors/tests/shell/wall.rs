//! The wall around a real browser, under a resolver of the test's own (C8).

use std::{
    collections::BTreeSet,
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use actors::{
    clock::SystemIds,
    config::ChromiumConfig,
    runtime::{Outcome, Runtime, RuntimeFactory, RuntimeSpec, Step, chromium::ChromiumFactory},
    space::Notice,
};
use async_trait::async_trait;
use egress::Resolver;
use eventlog::{
    Fence, Generation, Position, Sensitive,
    event::instance::{Bundle, InstanceKind, NetworkPolicy},
    id::{InstanceId, OperationId, SpaceId, TaskId},
};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

const HOST: &str = "rebinds.example";

/// Says one address, and another once it has turned.
struct Rebinding {
    first: IpAddr,
    then: IpAddr,
    turned: Arc<AtomicBool>,
    names: Arc<Mutex<BTreeSet<String>>>,
}

#[async_trait]
impl Resolver for Rebinding {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.names.lock().unwrap().insert(name.to_owned());
        Ok(vec![if self.turned.load(Ordering::SeqCst) { self.then } else { self.first }])
    }
}

/// A page that asks its own host again and again, each time over a new connection, and says what came of it.
async fn serve(listener: TcpListener, hits: Arc<AtomicUsize>) {
    let page = "<title>page</title><script>
        const ask = async () => {
            for (let i = 0; i < 1000; i++) {
                const said = await fetch('/again?' + i).then(r => r.text(), () => 'refused');
                document.title = i + ' ' + said;
                if (said === 'refused') break;
            }
            document.title = 'over ' + document.title;
        };
        ask();
        </script>";
    while let Ok((mut stream, _)) = listener.accept().await {
        hits.fetch_add(1, Ordering::SeqCst);
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
        let answer = format!("{head}Content-Length: {}\r\n\r\n{page}", page.len());
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

async fn start(folder: &std::path::Path, resolver: Rebinding, policy: NetworkPolicy) -> Arc<dyn Runtime> {
    let config = ChromiumConfig::default();
    let factory = ChromiumFactory::new(folder.to_owned(), config, Arc::new(SystemIds)).unwrap();
    let spec = RuntimeSpec {
        desk: actors::download::Desk::default(),
        space: SpaceId::from_uuid(uuid::Uuid::from_u128(1)),
        instance: InstanceId::from_uuid(uuid::Uuid::from_u128(2)),
        kind: InstanceKind::Chromium,
        bundle: Bundle::Standard,
        network_policy: policy,
        environment: eventlog::event::environment::Environment::default(),
        headless: true,
        generation: Generation(1),
        fence: Fence(Position(1)),
    };
    factory.with_resolver(Arc::new(resolver)).start(spec).await.unwrap()
}

async fn run(runtime: &dyn Runtime, capability: &str, args: Value) -> Outcome {
    let step = Step {
        task: TaskId::from_uuid(uuid::Uuid::from_u128(3)),
        operation: OperationId::from_uuid(uuid::Uuid::from_u128(4)),
        fence: Fence(Position(1)),
        capability: capability.parse().unwrap(),
        args: Sensitive::new(args),
        deadline: Instant::now() + Duration::from_secs(30),
    };
    runtime.execute(step, CancellationToken::new()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_a_host_that_rebinds_is_judged_anew_for_each_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, inside) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::new(AtomicUsize::new(0)));
    let port = ours.local_addr().unwrap().port();
    // On the same port, at the address that the name turns to.
    let trap = TcpListener::bind(("127.0.0.2", port)).await.unwrap();
    let hits = Arc::new(AtomicUsize::new(0));
    let tasks =
        [tokio::spawn(serve(ours, Arc::clone(&hits))), tokio::spawn(serve(trap, Arc::clone(&inside)))];
    let turned = Arc::new(AtomicBool::new(false));
    let names = Arc::<Mutex<BTreeSet<String>>>::default();
    let resolver = Rebinding {
        names: Arc::clone(&names),
        first: [127, 0, 0, 1].into(),
        then: [127, 0, 0, 2].into(),
        turned: Arc::clone(&turned),
    };
    let policy = NetworkPolicy {
        allow: vec![format!("{HOST}:{port}")],
        deny: vec!["127.0.0.2".to_owned()],
        ..NetworkPolicy::default()
    };
    let runtime = start(folder.path(), resolver, policy).await;
    let mut notices = runtime.notices();
    let url = format!("http://{HOST}:{port}/");
    let outcome = run(&*runtime, "navigate", json!({ "url": url })).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    turned.store(true, Ordering::SeqCst);
    let said = loop {
        let Outcome::Completed { result, .. } = run(&*runtime, "get_title", json!({})).await else {
            continue;
        };
        let title = result.get()["title"].as_str().unwrap().to_owned();
        if title.starts_with("over") {
            break title;
        }
    };
    assert!(said.contains("refused"), "{said}");
    let wanted = format!("{HOST}:{port}");
    let noticed = async {
        loop {
            match notices.next().await {
                Some(Notice::Blocked { rule, target, .. }) if *target.get() == wanted => return rule,
                Some(_) => {}
                None => panic!("the notices end"),
            }
        }
    };
    assert_eq!(tokio::time::timeout(Duration::from_secs(5), noticed).await.unwrap(), "denied");
    assert!(hits.load(Ordering::SeqCst) >= 1 && inside.load(Ordering::SeqCst) == 0, "nothing came inside");
    // The same for a navigation, which says so.
    let again = run(&*runtime, "navigate", json!({ "url": url })).await;
    let Outcome::Failed(error) = again else { panic!("{again:?}") };
    assert_eq!((error.code.as_str(), error.may_have_run), ("blocked_by_policy", true));
    let names = names.lock().unwrap().clone();
    assert_eq!(names, BTreeSet::from([HOST.to_owned()]), "the browser asks for nothing by itself");
    runtime.stop().await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
}
