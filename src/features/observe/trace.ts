/** The span of a request: that of Workers tracing, or the active one of OpenTelemetry. */
import type { DecisionFact } from '../../core/decide/observer.ts'
import type { DecisionSummary } from './binding.ts'

/** What spans of both have. */
interface ActiveSpan {
  setAttributes(attributes: Record<string, string | number>): unknown
  spanContext?(): { traceId: string }
}

/**
 * Where `@opentelemetry/api` keeps its parts and the active span: version 1 promises both to all of its copies, so that none has to be
 * imported. https://github.com/open-telemetry/opentelemetry-js/blob/main/api/src/internal/global-utils.ts
 */
const API = Symbol.for('opentelemetry.js.api.1')
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN')

type OpenTelemetrySpan = ActiveSpan & { isRecording(): boolean }
interface Globals {
  [API]?: { context?: { active(): { getValue(key: symbol): OpenTelemetrySpan | undefined } } }
}

/** The context of an invocation of a Worker, or Hono's, whose `executionCtx` throws outside of Workers. */
interface Invocation {
  tracing?: { getActiveSpan?(): (ActiveSpan & { isTraced: boolean }) | undefined }
  readonly executionCtx?: Invocation
}

/** Writes a decision into the active span. @returns the id of its trace, if it is sampled and tells it */
export function mark(fact: DecisionFact, summary: DecisionSummary): string | undefined {
  try {
    const span = spanOf(fact)
    span?.setAttributes(attributesOf(fact, summary))
    return span?.spanContext?.().traceId
  } catch {
    return undefined // a span that fails must not keep the decision from being counted
  }
}

/** The active span; `undefined` without one, and if the request is not sampled. */
function spanOf({ context }: Pick<DecisionFact, 'context'>): ActiveSpan | undefined {
  const active = (globalThis as Globals)[API]?.context?.active().getValue(SPAN)
  if (active) return active.isRecording() ? active : undefined
  const { tracing, executionCtx } = Object(context) as Invocation
  const span = (tracing ?? executionCtx?.tracing)?.getActiveSpan?.()
  return span?.isTraced ? span : undefined
}

function attributesOf(
  { decision, use }: Pick<DecisionFact, 'decision' | 'use'>,
  { policy, outcome, decidedBy }: DecisionSummary,
): Record<string, string | number> {
  const limit = decision.limits.find((one) => one.policy === policy)
  return {
    'sluice.outcome': outcome,
    'sluice.decided_by': decidedBy,
    ...(policy && { 'sluice.policy': policy }),
    ...(limit && { 'sluice.remaining': limit.remaining }),
    ...(use && use.calls > 0 && { 'sluice.store_ms': use.ms }),
  }
}
