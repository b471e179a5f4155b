//! Tests of the custom losses of a session.

use trainyard_protocol::CustomLossId;

use super::*;
use crate::MAX_CUSTOM_LOSSES;

async fn create(bench: &Bench, seq_id: i64) -> CustomLossId {
    let new = NewCustomLoss { seq_id, ..new_custom_loss(&bench.session) };
    bench.scheduler.create_custom_loss(&bench.me, new).await.unwrap()
}

async fn is_there(bench: &Bench, id: &CustomLossId) -> bool {
    match bench.scheduler.custom_loss(&bench.me, id).await {
        Ok((session, _)) => session == bench.session,
        Err(error) => is_not_found::<()>(Err(error)).then_some(false).unwrap(),
    }
}

#[tokio::test]
async fn a_further_loss_takes_the_place_of_the_one_unused_for_longest() {
    let bench = bench().await;
    let mut ids = Vec::new();
    for seq_id in 0..MAX_CUSTOM_LOSSES {
        ids.push(create(&bench, seq_id).await);
    }
    bench.pass(Duration::from_secs(120));
    assert!(is_there(&bench, &ids[0]).await, "this is a use");
    create(&bench, MAX_CUSTOM_LOSSES).await;
    assert!(is_there(&bench, &ids[0]).await && is_there(&bench, &ids[2]).await);
    assert!(!is_there(&bench, &ids[1]).await);
    // A repeated creation takes no place, and a lost one may be created again.
    assert_eq!(create(&bench, MAX_CUSTOM_LOSSES).await, CustomLossId::of_session(&bench.session, MAX_CUSTOM_LOSSES));
    assert_eq!(create(&bench, 1).await, ids[1]);
    assert!(is_there(&bench, &ids[1]).await && is_there(&bench, &ids[0]).await);
}
