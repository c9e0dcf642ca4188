/** Answers the questions of the page. It runs in a worker, so that the page stays usable. */
import type { Finding } from '../../../src/core/config/findings.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { lint } from '../../../src/lint/lint.ts'
import { fieldsAt, valuesAt } from '../editor/completions.ts'
import { placeOf, type Range, readConfig } from '../editor/read-config.ts'
import { type Compared, compare } from './compare.ts'
import { explained } from './explain.ts'
import { type Summary, summaryOf } from './figures.ts'
import { readLog } from './log.ts'
import { type Sample, type Served, simulate } from './simulate.ts'
import { type Arrival, arrivalsOf, START, type TrafficOptions } from './traffic.ts'

/** The number of looks at a quota in a run. */
const SAMPLES = 300

/** The text of the editor, and the traffic. */
export interface Scenario {
  text: string
  traffic: TrafficOptions
  /** The lines of an access log, for the pattern `log`. */
  log: string
  /** The address of the client whose quotas are shown. Defaults to that of the first request. */
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

export interface Played {
  summary: Summary
  served: Served[]
  samples: Sample[]
  /** The first policy, for the axes. */
  windowMs: number
  from: number
  to: number
  compared: Compared[]
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
      return explained(optionsIn(question.text), question.arrival)
  }
}

const isError = ({ code }: Finding) => code === 'invalid' || code === 'duplicate-name'

/** The problems of the text, the errors of the parser and the findings of the linter. */
export function marksOf(text: string): Mark[] {
  const read = readConfig(text)
  if (read.problems.length > 0) {
    return read.problems.map((problem) => ({ ...problem, severity: 'error' }))
  }
  return lint(read.value).map((finding) => ({
    ...placeOf(finding, read),
    severity: isError(finding) ? 'error' : 'warning',
    code: finding.code,
    message: `${finding.path}: ${finding.message} ${finding.hint}`.trim(),
  }))
}

function optionsIn(text: string): ConfigOptions {
  return readConfig(text).value as ConfigOptions
}

async function play({ text, traffic, log, watched }: Scenario): Promise<Answers['play']> {
  const mistake = marksOf(text).find(({ severity }) => severity === 'error')
  if (mistake) return { problem: mistake.message }
  if (!URL.canParse(traffic.url)) return { problem: `URL: expected a URL, got "${traffic.url}"` }
  const options = optionsIn(text)
  const [policy] = parseConfig(options, defaultFields).policies
  if (!policy) return { problem: 'The configuration has no policy.' }
  const { windowMs } = policy
  const pasted = traffic.pattern === 'log' ? readLog(log, traffic) : undefined
  const arrivals = pasted?.arrivals ?? arrivalsOf(traffic, policy)
  const from = pasted ? (arrivals[0]?.at ?? 0) : START
  const to = pasted ? (arrivals.at(-1)?.at ?? 0) : START + traffic.lengthMs
  const lengthMs = Math.max(1, to - from)
  const everyMs = Math.max(1, Math.ceil(lengthMs / SAMPLES))
  const run = await simulate(options, arrivals, { samples: { from, to, everyMs }, watched })
  return {
    summary: summaryOf(run, windowMs, lengthMs),
    served: run.served,
    samples: run.samples,
    windowMs,
    from,
    to: Math.max(to, ...run.served.map(({ at }) => at)),
    compared: await compare(options, windowMs, arrivals, lengthMs),
    note: pasted?.note ?? '',
  }
}
