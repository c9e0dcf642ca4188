/**
 * The report of a replay, as `--json` prints it. Times are in ms since the epoch, durations are in ms, and shares are between 0 and 1.
 * A change that a reader of the JSON notices gets a new `version`.
 */
import type { PolicyMode } from '../../../src/core/base/decision.ts'
import type { NotReplayed } from '../decide/verdict.ts'

export interface ReplayReport {
  version: 1
  source: Source
  /** The name of the configuration file. */
  config: string
  engine: 'memory' | 'redis'
  /** Policies and list entries that the log cannot decide. */
  notReplayed: NotReplayed[]
  notes: string[]
  /** The times of the first and the last request; null without a request. */
  from: number | null
  to: number | null
  /** All requests. `refused` counts the requests that an enforced policy, a list entry or a missing key refuses. */
  total: RefusalCounts
  /** Admitted requests that a shadow policy would refuse. */
  wouldRefuse: Bounds
  /** Requests that the log answered with 429 or 403, and the number of them that this configuration refuses too. */
  answered: { 429: Answered; 403: Answered }
  policies: PolicyCounts[]
  /** The length of the slots of `overTime`; the first one begins at `slotsFrom`. */
  slotMs: number
  slotsFrom: number
  clients: ClientCount
  /** The clients with the most refusals. */
  offenders: ClientReport[]
  against?: Comparison
  /** What the configuration expects (`expect`). Absent if it expects nothing. */
  expectations?: ExpectationReport[]
  suggestion?: Suggestion
}

/**
 * A count that whole-second stamps leave open: the low and the high result of the two ways to spread the requests of a second. Both are
 * equal if the log has milliseconds.
 */
export interface Bounds {
  low: number
  high: number
}

/** The log that was read. */
export interface Source {
  files: string[]
  format: string
  wholeSeconds: boolean
  lines: number
  unparsed: number
  /** Lines of connections that sent no HTTP request, such as the start of a TLS connection. */
  withoutRequest: number
  firstUnparsed: Unparsed[]
  /** Lines that are more than a minute out of order. They count at the time of the line before them. */
  late: number
  /** True if the replay was stopped before the end of the log. */
  interrupted: boolean
}

export interface Unparsed {
  file: string
  line: number
  reason: string
  text: string
}

export interface RefusalCounts {
  requests: number
  refused: Bounds
  share: Bounds
  /** Clients with a refusal. */
  clients: Bounds
  firstRefusal: number | null
  /** The minute with the most refusals. */
  worstMinute: Minute | null
  overTime: OverTime
}

export interface Minute {
  time: number
  refused: Bounds
}

/** One number for each slot. */
export interface OverTime {
  requests: number[]
  low: number[]
  high: number[]
}

export interface PolicyCounts extends RefusalCounts {
  /** The name of the policy, or of the entry of `deny`. */
  name: string
  /** `deny` is an entry of that list; `missing-key` is a policy with `onMissingKey: 'refuse'`, and its requests without the key. */
  kind: 'policy' | 'deny' | 'missing-key'
  /** A shadow policy refuses nothing: its numbers say what it would refuse. */
  mode: PolicyMode
}

export interface Answered {
  requests: number
  refused: Bounds
}

export interface ClientCount {
  count: number
  /**
   * False if the log has more clients than memory is used for. Clients that were forgotten and came back then count twice, so that
   * `count` and the numbers of refused clients are upper bounds.
   */
  exact: boolean
}

/** One client and what else it did. */
export interface ClientReport {
  /** An IPv4 address, the /64 of an IPv6 address, or `unknown`. */
  client: string
  /** The /24 or /48 around it. */
  network: string | null
  country: string | null
  asn: string | null
  requests: number
  refused: Bounds
  wouldRefuse: Bounds
  /** Refusals by policy, most first. */
  policies: { name: string; refused: Bounds }[]
  /** Requests by the first digit of the logged status, such as `2xx`; `none` without a status. */
  statuses: Record<string, number>
  from: number
  to: number
  /** The most requests within one minute of the clock. */
  worstMinute: { time: number; requests: number }
  userAgents: Frequencies
  /** Paths without the query. */
  paths: Frequencies
}

/** The most frequent of many texts. */
export interface Frequencies {
  /**
   * The number of requests that were looked at: of a client with more than 500, every eighth of the others. Requests before the first
   * refusal may be missing if the log has many clients.
   */
  requests: number
  /** The number of different texts. */
  different: Bounds
  top: { text: string; requests: Bounds }[]
}

/** The requests that two configurations decide differently. */
export interface Comparison {
  /** The name of the other configuration file. */
  config: string
  engine: 'memory' | 'redis'
  notReplayed: NotReplayed[]
  /** Refused by both. */
  both: Bounds
  /** Refused by `config` of the report, admitted by the other one. */
  added: Change
  /** Admitted by `config` of the report, refused by the other one. */
  removed: Change
}

export interface Change {
  requests: Bounds
  clients: Bounds
  /** The policies that refuse these requests, most first. */
  policies: { name: string; requests: Bounds }[]
  /** The clients with the most of these requests. */
  top: { client: string; requests: Bounds }[]
}

/** An expectation, and the most requests of one client that the configuration admits in any interval. */
export interface ExpectationReport {
  /** The requests and the client, such as `POST /login by ip`. */
  title: string
  atMost: number
  inMs: number
  most: Bounds
  /** The client with the most requests, and the time of the first of them. Absent without a request. */
  client?: string
  from?: number
  /** What the log lacks. Empty if the expectation is checked. */
  notReplayed: string[]
}

/** A suggested limit, with the peaks of all keys. */
export interface Suggestion {
  policy: string
  /** The parts of the partition key, such as `ip`. */
  countedBy: string
  /** The number of different keys in the log. */
  keys: number
  peaks: Peaks[]
  /** The share of the keys that may be refused (`--refuse-clients`). */
  refuse: number
  suggested: { limit: number; windowMs: number; refusedKeys: number }
  /**
   * The suggested limit is between two neighbouring peaks: keys up to `below` keep room. `above` is null if it refuses none. `highest` has
   * the highest different peaks, ascending.
   */
  gap: { below: number; above: number | null; highest: number[] }
  /** The first of the keys that it would refuse, the highest peak first. */
  refused: { client: string; peak: number }[]
  /** The policy in shadow mode, as text for sluice.config.ts. */
  text: string
}

/** The distribution of the highest count of each key in a sliding window. */
export interface Peaks {
  windowMs: number
  p50: number
  p90: number
  p99: number
  p999: number
  max: number
  /** Points of the curve: this limit refuses this number of keys. The limits increase. */
  curve: { limit: number; keys: number }[]
}
