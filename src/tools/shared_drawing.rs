//! An operator's drawing in a scene that several arms share: one offer and one agreement for all of them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::drawing_offer::{DrawingOffer, orders_given};
use super::operator_drawing::{DrawingOrder, ResolvedDrawing, UnresolvedDrawing, hindrance};
use super::preview_text::used_pens;
use super::refusal_groups::refusal_groups;
use super::stroke::{DrawingScope, rounded};
use super::{Node, RemoteCallWatch, SharedPreview, motion_job, pictures, resume, team_stroke};
use call::{Refusal, refusal};
use job::PastJob;
use plan::SharedPlan;
use scene::{SharedScene, SheetStroke};

impl Node {
    /// Finds the arms of an order, each with its scene: several where they share the scene and the order names none of them.
    pub(super) fn resolve_all(
        &self,
        order: &DrawingOrder,
    ) -> Result<Vec<ResolvedDrawing>, UnresolvedDrawing> {
        if let Some(left) = self.left_by_several(order)? {
            return Ok(left);
        }
        let Some(shared) = self.shared_by(order)? else {
            return Ok(vec![self.resolve(order)?]);
        };
        let of_part = |part: &scene::ScenePart| {
            let model = &part.scene.arm.file.name;
            let arm = self.arm_of_part(&shared.name, part.arm_name(), model)?;
            let scope = DrawingScope {
                shared: Some(Arc::clone(&shared)),
                ..DrawingScope::default()
            };
            Ok(ResolvedDrawing {
                scope,
                ..ResolvedDrawing::new(arm, Arc::clone(&part.scene))
            })
        };
        shared.parts.iter().map(of_part).collect()
    }

    /// Returns what several arms left of one drawing, if an order resumes it and names none of them.
    fn left_by_several(
        &self,
        order: &DrawingOrder,
    ) -> Result<Option<Vec<ResolvedDrawing>>, UnresolvedDrawing> {
        let is_plain = !order.frame && order.trim.is_none() && order.arm.is_none();
        if !is_plain || order.design.is_some() || order.repeats.is_some() {
            return Ok(None);
        }
        let left = team_stroke::left_of_one_drawing(self);
        let Some(past) = left.filter(|past| !past.is_drawing_of_caller) else {
            return Ok(None);
        };
        let name = scene::shared_name(&past.scene).to_owned();
        order.check_same_scene(&PastJob {
            scene: name.clone(),
            ..past.clone()
        })?;
        let (shared, members) = team_stroke::left_by_all(self, &name, &past)?;
        let shared = Arc::new(shared);
        let resumed = members.into_iter().map(|member| {
            let rest = member.past.as_ref().map(|past| resume::rest_of(self, past));
            let scope = DrawingScope {
                shared: Some(Arc::clone(&shared)),
                rest,
                plan: None,
            };
            ResolvedDrawing {
                scope,
                past: member.past,
                ..ResolvedDrawing::new(&member.arm, member.scene)
            }
        });
        Ok(Some(resumed.collect()))
    }

    /// Returns the scene of an order with its design on it, if several arms draw it.
    fn shared_by(
        &self,
        order: &DrawingOrder,
    ) -> Result<Option<Arc<SharedScene>>, UnresolvedDrawing> {
        let name = order
            .scene
            .as_deref()
            .filter(|name| self.scenes.is_shared(name));
        let (Some(name), Some(design), None, None) =
            (name, &order.design, &order.repeats, &order.arm)
        else {
            return Ok(None);
        };
        if order.frame || order.trim.is_some() {
            return Err(refusal!(
                "a frame or a trim works with one arm, but several draw scene `{name}`; nothing moved. Next: name one with `--arm`"
            )
            .into());
        }
        let library = self.scenes.with_drawing(design.clone());
        let shared = library.shared(name, order.overlay.as_deref())?;
        Ok(Some(Arc::new(shared)))
    }
}

/// Returns the revision that names what all of these draw.
pub(super) fn revision(drawings: &[ResolvedDrawing]) -> String {
    let all = drawings.iter().map(|drawing| drawing.scene.revision.hex());
    all.collect::<Vec<_>>().join("+")
}

impl DrawingOffer {
    /// Plans a drawing of several arms from where they stand and describes it.
    pub(super) async fn of_several(
        node: &Arc<Node>,
        order: &DrawingOrder,
        shared: &Arc<SharedScene>,
        drawings: &[ResolvedDrawing],
    ) -> Result<Self, Refusal> {
        let orders_seen = orders_given(drawings);
        let arms = drawings.iter().map(|drawing| Arc::clone(&drawing.arm));
        let watch = RemoteCallWatch::unobserved();
        let preview = SharedPreview::from_here(node, arms.collect(), shared, &watch).await;
        let preview = preview.map_err(motion_job::JobError::into_refusal)?;
        let mut hindrances = drawings.iter();
        let hindrance = hindrances.find_map(|drawing| hindrance(node, drawing, order.again));
        let offer = Self {
            orders_seen,
            revision: revision(drawings),
            hindrance,
            refusals: refusal_groups(&preview.refusals),
            ..Self::of_arms(node, drawings).with_shared(shared)
        };
        Ok(match &preview.plan {
            Some(plan) => offer.with_shared_plan(shared, plan),
            None => offer,
        })
    }

    /// Describes the arms.
    fn of_arms(node: &Node, drawings: &[ResolvedDrawing]) -> Self {
        let all = drawings
            .iter()
            .map(|drawing| Self::of_arm(node, &drawing.arm));
        let joined = all.reduce(|all, one| Self {
            arm: format!("{}, {}", all.arm, one.arm),
            port: format!("{}, {}", all.port, one.port),
            is_real: all.is_real || one.is_real,
            orders: match all.orders.is_empty() {
                true => one.orders,
                false => all.orders,
            },
            ..all
        });
        joined.unwrap_or_default()
    }

    fn with_shared(self, shared: &SharedScene) -> Self {
        let strokes = shared.strokes.iter().map(|shared| shared.stroke.clone());
        let strokes: Vec<SheetStroke> = strokes.collect();
        let Some(first) = shared.parts.first() else {
            return self;
        };
        let of_part = |part: &scene::ScenePart| {
            let own = used_pens(&part.scene, &part.scene.strokes);
            own.map(|(_, pen)| pen.name.clone()).collect::<Vec<_>>()
        };
        let mut pens: Vec<String> = shared.parts.iter().flat_map(of_part).collect();
        pens.dedup();
        Self {
            title: first.scene.shared_title(),
            pens,
            ..self.with_scene(&first.scene, &strokes)
        }
    }

    fn with_shared_plan(self, shared: &SharedScene, plan: &SharedPlan) -> Self {
        let reports = || plan.plans.iter().map(|plan| &plan.report);
        let nearest = reports().min_by(|a, b| a.margin_least_deg.total_cmp(&b.margin_least_deg));
        let each = shared.parts.iter().zip(reports());
        let each = each
            .map(|(part, report)| format!("{} draws {}", part.arm_name(), report.strokes_text()));
        let mut notes = self.notes;
        notes.push(each.collect::<Vec<_>>().join(", "));
        Self {
            plan: Some(plan.hash.clone()),
            strokes: reports().map(|report| report.stroke_count).sum(),
            pen_down_mm: rounded(reports().map(|report| report.pen_down_mm).sum()),
            duration_s: rounded(plan.duration_s),
            dips: reports().map(|report| report.dips).sum(),
            margin_least_deg: nearest.map_or(0.0, |report| rounded(report.margin_least_deg)),
            margin_least_joint: nearest
                .map(|report| report.margin_least_joint.clone())
                .unwrap_or_default(),
            picture: pictures::shared(shared, plan).map(|png| STANDARD.encode(png)),
            notes,
            ..self
        }
    }
}
