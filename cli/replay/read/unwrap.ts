/** What collectors write around the lines of a server. */

/** Returns the line of the server, or `undefined` for a line that is not wrapped. */
type Wrapping = (line: string) => string | undefined

/** Some lines of a log without the wrappings that most of them have. */
export interface Unwrapped {
  lines: string[]
  unwrap(line: string): string
  /** True if the lines were in fields of JSON objects, which may have the parts of the requests too. */
  isInJson: boolean
}

const prefix =
  (pattern: RegExp): Wrapping =>
  (line) => {
    const found = pattern.exec(line)
    return found ? line.slice(found[0].length) : undefined
  }

// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal's colours begin with this character
const COLOURS = /\x1b\[[\d;]*m/g
const coloured: Wrapping = (line) =>
  line.includes('\x1b[') ? line.replace(COLOURS, '') : undefined

const STAMP = String.raw`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)`
/** The host and the program of a syslog line: `lb1 haproxy[812]: `. */
const SENDER = String.raw`(?:\S*[^\s:] )?[^\s:[\]#]+(?:\[\d+\])?: `
const DATA = String.raw`(?:-|(?:\[[^\]"]*(?:"(?:[^"\\]|\\.)*"[^\]"]*)*\])+)`

/** The fields in which collectors write a line: docker and Fluent Bit, journald, Google Cloud, and others. */
const TEXTS = ['log', 'MESSAGE', 'textPayload', 'message', 'line']
const inJson: Wrapping = (line) => {
  if (!line.startsWith('{')) return undefined
  try {
    const fields = JSON.parse(line)
    const text = TEXTS.map((name) => fields[name]).find((one) => typeof one === 'string')
    return text?.replace(/[\r\n]+$/, '')
  } catch {
    return undefined
  }
}

const wrappings: Wrapping[] = [
  coloured,
  // docker compose and PM2: `web-1  | `
  prefix(/^[\w.-]+(?:\|[\w.-]+)? +\| ?/),
  // kubectl logs --prefix: `[pod/web-7d4/nginx] `
  prefix(/^\[(?:pod|container)\/[^\]\s]+\] /),
  // CRI, in which Kubernetes keeps logs: `2026-11-20T10:00:00.1Z stdout F `
  prefix(new RegExp(`^${STAMP} std(?:out|err) [FP] `)),
  // RFC 5424, 6
  prefix(new RegExp(`^(?:\\d+ )?<\\d{1,3}>\\d{1,2} \\S+ \\S+ \\S+ \\S+ \\S+ ${DATA} \uFEFF?`)),
  // RFC 3164, 4.1, which is also the short form of journald, and the same with ISO 8601
  prefix(
    new RegExp(
      `^(?:<\\d{1,3}>)?(?:[A-Z][a-z]{2} [ \\d]\\d(?: \\d{4})? \\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?|${STAMP}) ${SENDER}`,
    ),
  ),
  // docker logs -t, kubectl logs --timestamps
  prefix(new RegExp(`^${STAMP} `)),
  inJson,
]

/** Collectors pass lines to each other. */
const DEEPEST = 4

/** The lines as they are, and then without one wrapping after the other. */
export function* unwrapped(lines: string[]): Generator<Unwrapped> {
  let found: Unwrapped = { lines, unwrap: (line) => line, isInJson: false }
  for (let depth = 0; depth <= DEEPEST; depth += 1) {
    yield found
    const outer = found
    const wrapping = wrappings.find(
      (one) => outer.lines.filter((line) => one(line) !== undefined).length * 2 > lines.length,
    )
    if (!wrapping) return
    const unwrap = (line: string) => wrapping(line) ?? line
    found = {
      lines: outer.lines.map(unwrap),
      unwrap: (line) => unwrap(outer.unwrap(line)),
      isInJson: wrapping === inJson,
    }
  }
}
