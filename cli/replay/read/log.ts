import type { Fact, LogLine } from '../line.ts'
import { patterns } from './formats/patterns.ts'
import type { Property } from './parser.ts'
import type { RemedyOf } from './remedies.ts'

/** The values of `--format`, apart from `auto`. `combined` is also the Common Log Format. */
export type Format =
  | 'combined'
  | 'json'
  | 'logpush'
  | 'caddy'
  | 'w3c'
  | 'csv'
  | keyof typeof patterns
export const formats: Format[] = [
  ...(['combined', 'json', 'logpush', 'caddy', 'w3c'] as const),
  ...(Object.keys(patterns) as (keyof typeof patterns)[]),
  'csv',
]

export interface LogOptions {
  /** Defaults to `auto`: the format of the first lines. */
  format?: Format | 'auto' | undefined
  /** The format of the lines as `log_format` of nginx: `$remote_addr [$time_local] "$request" $status`. */
  pattern?: string | undefined
  /** The field of the log that holds a property of a request, such as `{ ip: 'client.address', 'header:x-plan': 'plan' }`. */
  map?: Record<string, string> | undefined
  /** The host of the requests whose line has none. */
  host?: string | undefined
}

/** An access log. Its requests can be read once. */
export interface Log {
  /** The format, for people: "Combined Log Format", "JSON (nginx)". */
  readonly format: string
  /** True if the stamps are whole seconds, in at least one of the files. */
  readonly wholeSeconds: boolean
  /** The facts that all files can tell. */
  readonly facts: ReadonlySet<Fact>
  /** How to make the log tell a fact that it cannot tell. */
  readonly remedyOf: RemedyOf
  /** As of a `Parser`, for the first file that has one. */
  readonly chain?: string | undefined
  readonly addressMayBe?: string | undefined
  /** The properties that `--map` names. */
  readonly mapped: ReadonlySet<Property>
  /** Some of the first requests. */
  readonly first: readonly LogLine[]
  readonly progress: Readonly<Progress>
  /**
   * The requests in the order of their times, in lists of up to some thousand lines. The times never decrease, and they are whole
   * milliseconds. Throws a `LogError` if the log cannot be read, or if more than 5 % of its lines do not parse.
   */
  lines(): AsyncIterable<LogLine[]>
}

/** Counts, which grow while the log is read. `lines` is the sum of `requests`, `withoutRequest` and `unparsed`. */
export interface Progress {
  /** Lines that are not blank. */
  lines: number
  requests: number
  /** Lines whose connection sent no HTTP request for a path, such as a TLS handshake on a plain port. */
  withoutRequest: number
  firstWithoutRequest: BadLine[]
  unparsed: number
  firstUnparsed: BadLine[]
  /** Requests over a minute older than one before them. They have the time of the request before them. */
  late: number
  /** Bytes read from the files, before decompression. */
  bytes: number
  /** The size of all files. Absent if one of them is stdin. */
  totalBytes?: number | undefined
}

/** A line that is not a request. Up to five of each kind are kept. */
export interface BadLine {
  file: string
  /** Counts from 1. */
  line: number
  reason: string
  /** The first 80 characters, printable. */
  text: string
}

/** A log that cannot be replayed. The message says why, and the remedy. */
export class LogError extends Error {
  override name = 'LogError'
  readonly code: LogErrorCode

  constructor(code: LogErrorCode, message: string) {
    // Names of files and fields may come from an attacker, and could command the terminal.
    super(message.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u00b7'))
    this.code = code
  }
}

export type LogErrorCode =
  /** No file with this name, or none that matches the pattern. */
  | 'no-file'
  | 'folder'
  | 'no-permission'
  | 'unreadable'
  | 'empty'
  | 'binary'
  /** A compression that this Node cannot read. */
  | 'compression'
  /** The compressed data ends too early, or is damaged. */
  | 'damaged'
  | 'unknown-format'
  | 'mixed-formats'
  /** A mapping that no line of the log fits. */
  | 'map'
  /** A pattern that is invalid, or that no line has. */
  | 'pattern'
  /** Too many lines do not parse. */
  | 'unparsed'
