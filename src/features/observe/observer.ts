/** The observer of one limiter: counts its decisions, and hands them to sinks, to the webhook and to `onDecision`. */
import { systemClock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { whenKnown } from '../../core/base/when-known.ts'
import type { DecisionFact, Observer } from '../../core/decide/observer.ts'
import type { Database } from '../../core/decide/question.ts'
import type { Match } from '../../core/program/match.ts'
import { type DecisionSummary, labelOf, matchOf, shareOf, summaryOf } from './binding.ts'
import { createCounters } from './counters.ts'
import type { DecisionEvent, DecisionOutcome } from './event.ts'
import { beginCall, createMeter, isForRequests } from './measure.ts'
import type { createNearLimit, NearLimit } from './near-limit.ts'
import type { ObserveSettings } from './options.ts'
import { fallbacksIn, lastMinuteOf, type Sink, type Stats } from './report.ts'
import type { createReports } from './reports.ts'
import type { mark } from './trace.ts'

const BY_CLIENT: DecisionOutcome[] = ['limited', 'banned', 'shielded']

/** What the kinds of destinations do. `reports` sends to all that are sinks. */
export interface Destinations {
  analytics?: (binding: string) => Sink
  log?: () => Sink
  otlp?: (url: string) => Sink
  reports?: typeof createReports
  trace?: typeof mark
  webhook?: typeof createNearLimit
}

/** @param destinations at least those of the settings */
export function createObserver(
  { subjects, to, every, webhook, onDecision }: ObserveSettings,
  destinations: Destinations,
  log: Log,
  clock: () => number = systemClock,
): Observer & { statsOf(database: Pick<Database, 'health'>): Stats } {
  const trace = to.includes('trace') ? destinations.trace! : undefined
  const sinks = to
    .filter((one) => one !== 'trace')
    .map((destination) => {
      const [kind, target = ''] = destination.split(/:(.*)/)
      return destinations[kind as 'analytics' | 'log' | 'otlp']!(target)
    })
  const counters = createCounters(sinks.length > 0)
  const reports =
    sinks.length > 0
      ? destinations.reports!({ sinks, everyMs: every, take: counters.take, log })
      : undefined
  const nearLimit = webhook && destinations.webhook!({ ...webhook, log, clock })

  const failed = (error: unknown) =>
    log('observe-failed', (error as Error)?.name ?? '', 'a decision could not be reported')

  function record(fact: DecisionFact) {
    const { decision, env, waitUntil, use, from } = fact
    const now = clock()
    const { summary, match } = summaryOf(fact, now)
    const { outcome, policy = '' } = summary
    const traceId = trace?.(fact, summary)
    counters.decided(summary, now)
    if (!decision.allowed && BY_CLIENT.includes(outcome)) {
      const count = (subject: string | undefined) => {
        if (subject !== undefined) counters.refused(policy, subject, now)
      }
      // On a developer's machine an operator wants to recognize a client.
      const isPlain = env.SLUICE_DEV === 'true' && subjects === 'hashed'
      withSubject(match, fact, count, isPlain ? 'plain' : subjects)
    }
    if (onDecision) {
      withSubject(match, fact, (subject) => {
        const { colo, country } = from
        const event: DecisionEvent = {
          ...summary,
          ...(use && use.calls > 0 && { storeMs: use.ms }),
          calls: use?.calls ?? 0,
          billedCommands: use?.billedCommands ?? 0,
          ...(colo && { colo }),
          ...(country && { country }),
          ...(traceId && { traceId }),
          ...(subject !== undefined && { subject }),
        }
        emit(event, fact)
      })
    }
    if (nearLimit && !fact.verified) notify(nearLimit, fact, summary)
    reports?.send(now, env, waitUntil)
  }

  function withSubject(
    match: Match | undefined,
    { hash, waitUntil }: DecisionFact,
    next: (subject: string | undefined) => void,
    names = subjects,
  ) {
    const label = match && labelOf(names, match.partitionKey, hash)
    const done = whenKnown(label, next)
    if (done instanceof Promise) waitUntil(done.catch(failed))
  }

  function notify(nearLimit: NearLimit, fact: DecisionFact, { time, decidedBy }: DecisionSummary) {
    const { decision, env, waitUntil } = fact
    let after: Promise<unknown> | undefined
    for (const limit of decision.limits) {
      const match = matchOf(limit, fact)
      const remainingShare = shareOf(limit, match)
      if (!match || !nearLimit.isNear(remainingShare, env)) continue
      const { planName: plan, algorithm } = match.terms
      const parts = match.partitionKey.filter(
        ([part, value]) => value !== undefined && (subjects === 'plain' || part === 'api-key'),
      )
      const key = parts[0] && Object.fromEntries(parts)
      withSubject(match, fact, (subject) => {
        const event = { time, decidedBy, remainingShare, subject, plan, key }
        const isFixedWindow = algorithm === 'fixed-window'
        const context = { env, waitUntil, after, decidedAt: decision.decidedAt, isFixedWindow }
        after = nearLimit.decided(event, limit, context)
      })
    }
  }

  function emit(event: DecisionEvent, { context, waitUntil }: DecisionFact) {
    try {
      const result = onDecision?.(event, context)
      if (result instanceof Promise) waitUntil(result.catch(failed))
    } catch (error) {
      failed(error) // must not keep the notices and the report from being sent
    }
  }

  function statsOf({ health }: Pick<Database, 'health'>): Stats {
    const now = clock()
    const total = counters.total(now)
    const slots = counters.slots(now)
    const state = health()
    return {
      ...{ v: 1, now, total, slots },
      circuit: state.openSince === undefined ? 'closed' : 'open',
      ...state,
      lastMinute: lastMinuteOf({ now, slots }),
      fallbacks: fallbacksIn(total.series),
      dropped: { ...reports?.dropped(), ...(nearLimit && { webhook: nearLimit.dropped() }) },
    }
  }

  return {
    decided(fact) {
      try {
        record(fact)
      } catch (error) {
        failed(error)
      }
    },
    measure: (lists) => createMeter(clock, lists),
    begin: (sent, isOperators = sent.length > 0 && !isForRequests(sent)) =>
      beginCall(sent, (call) => counters.called(call, clock(), isOperators), clock),
    statsOf,
  }
}
