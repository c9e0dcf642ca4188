/** Answers the questions of the page. It runs in a worker, so that the page stays usable. */

import { ConfigError } from '../../../src/core/base/errors.ts'
import type { Finding } from '../../../src/core/config/findings.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { lint, problemsOf } from '../../../src/lint/lint.ts'
import { fieldsAt, valuesAt } from '../editor/completions.ts'
import { placeOf, type Range, type ReadConfig, readConfig } from '../editor/read-config.ts'
import { type Compared, compare } from './compare.ts'
import { firstOf, parsed, type Served, type Setup } from './door.ts'
import { explained } from './explain.ts'
import { type Summary, summaryOf } from './figures.ts'
import { decisiveOf, isFinal, lessonOf } from './lesson.ts'
import { readLog } from './log.ts'
import { type Sample, simulate } from './simulate.ts'
import { type Arrival, addressOf, arrivalsOf, START, type TrafficOptions } from './traffic.ts'

/** The number of looks at a quota in a run. */
const SAMPLES = 300

/** The text of the editor, and the traffic. */
export interface Scenario {
  text: string
  traffic: TrafficOptions
  /** The lines of an access log, for the pattern `log`. */
  log: string
  /** The address of the client whose quotas are shown. Defaults to the one with the most requests. */
  watched?: string | undefined
}

/** A mark in the editor. */
export interface Mark extends Range {
  /** `error`: the configuration does not run. */
  severity: 'error' | 'warning'
  /** The code of a finding; docs/reference/linter.md describes it. */
  code?: string
  message: string
}

/** The `limit` of a policy in the text, if it is a number. */
export interface Dial extends Range {
  policy: string
  value: number
}

export interface Played {
  /** What happened, in a few sentences. */
  lesson: string
  /** The policy to look at. */
  policy: string
  summary: Summary
  served: Served[]
  samples: Sample[]
  /** The clients with the most requests, at most 20. */
  clients: [name: string, requests: number][]
  dials: Dial[]
  /** True if the text calls a limit by name and key. */
  isCall: boolean
  /** When the traffic begins, ms since the epoch. */
  start: number
  /** What the chart shows: from shortly before the first request. */
  from: number
  to: number
  /** The first policy under each algorithm, and its window. */
  compared: Compared[]
  windowMs: number
  /** False if the first policy changes charges after the decision: the most of a client is then not known. */
  isFinal: boolean
  /** What the page should know about the traffic. */
  note: string
}

export type Question =
  | { kind: 'check'; text: string }
  | { kind: 'complete'; path: string[] }
  | { kind: 'play'; scenario: Scenario }
  | { kind: 'explain'; text: string; arrival: Arrival }

export interface Answers {
  check: Mark[]
  complete: { fields: string[]; values: string[] }
  play: Played | { problem: string }
  explain: string
}

export function answer(
  question: Question,
): Promise<Answers[keyof Answers]> | Answers[keyof Answers] {
  switch (question.kind) {
    case 'check':
      return marksOf(question.text)
    case 'complete':
      return { fields: fieldsAt(question.path), values: valuesAt(question.path) }
    case 'play':
      return play(question.scenario)
    case 'explain':
      return explained(readConfig(question.text).value as ConfigOptions, question.arrival)
  }
}

const isError = ({ code }: Finding) => code === 'invalid' || code === 'duplicate-name'

/** The problems of the text, the errors of the parser and the findings of the linter. */
export function marksOf(text: string): Mark[] {
  const read = readConfig(text)
  if (read.problems.length > 0) {
    return read.problems.map((problem) => ({ ...problem, severity: 'error' }))
  }
  return findingsIn(read).map((finding) => ({
    ...placeOf(finding, read),
    severity: isError(finding) ? 'error' : 'warning',
    code: finding.code,
    message: `${finding.path}: ${finding.message} ${finding.hint}`.trim(),
  }))
}

function findingsIn({ value, call }: ReadConfig): Finding[] {
  if (!call) return lint(value)
  try {
    parsed({ terms: value, call } as Setup)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return problemsOf(error)
    throw error
  }
}

async function play({ text, traffic, log, watched }: Scenario): Promise<Answers['play']> {
  const mistake = marksOf(text).find(({ severity }) => severity === 'error')
  if (mistake) return { problem: mistake.message }
  if (!URL.canParse(traffic.url)) return { problem: `URL: expected a URL, got "${traffic.url}"` }
  const read = readConfig(text)
  const { value, call } = read
  const setup = (call ? { terms: value, call } : value) as Setup
  const { policies } = parsed(setup)
  const { policy } = firstOf(setup)
  if (!policy) return { problem: 'The configuration has no policy.' }
  const { windowMs } = policy
  const pasted = traffic.pattern === 'log' ? readLog(log, traffic) : undefined
  const nameOf = call ? (client: number) => `user-${client + 1}` : addressOf
  const arrivals = pasted?.arrivals ?? arrivalsOf(traffic, policy, nameOf)
  const clients = [...Map.groupBy(arrivals, ({ ip }) => ip)]
    .map(([ip, own]): [string, number] => [ip, own.length])
    .sort(([, one], [, other]) => other - one)
    .slice(0, 20)
  const first = arrivals[0]?.at ?? START
  const start = pasted ? first : START
  const to = pasted ? (arrivals.at(-1)?.at ?? first) : START + traffic.lengthMs
  const lengthMs = Math.max(1, to - start)
  const from = Math.max(start, Math.floor(first - (to - first) / 20))
  const everyMs = Math.max(1, Math.ceil((to - from) / SAMPLES))
  const run = await simulate(setup, arrivals, {
    samples: { from, to, everyMs },
    watched: watched ?? clients[0]?.[0],
  })
  return {
    lesson: lessonOf(run.served, policies, start),
    policy: decisiveOf(run.served, policies).name,
    summary: summaryOf(run, windowMs, lengthMs),
    served: run.served,
    samples: run.samples,
    clients,
    dials: policies.flatMap(({ name }, index) => dialOf(name, index, text, read)),
    isCall: call !== undefined,
    start,
    from,
    to: Math.max(to, ...run.served.map(({ at }) => at)),
    compared: await compare(setup, windowMs, arrivals, lengthMs),
    windowMs,
    isFinal: isFinal(policy),
    note: pasted?.note ?? '',
  }
}

function dialOf(policy: string, index: number, text: string, { places, call }: ReadConfig): Dial[] {
  const place = places.get(call ? `${policy}.limit` : `policies[${index}].limit`)
  const written = place && /:\s*([\d_]+)$/.exec(text.slice(place.from, place.to))?.[1]
  if (!place || !written) return []
  const { to } = place
  return [{ policy, from: to - written.length, to, value: Number(written.replaceAll('_', '')) }]
}
