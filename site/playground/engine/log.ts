/** Reads an access log that is pasted into the page, with the readers of `sluice replay`. */
import type { LogLine } from '../../../cli/replay/line.ts'
import { detect } from '../../../cli/replay/read/detect.ts'
import { Rejection } from '../../../cli/replay/read/rejection.ts'
import { type Arrival, MAX_REQUESTS, type TrafficOptions } from './traffic.ts'

export interface PastedLog {
  arrivals: Arrival[]
  /** The format, and the lines that are left out. */
  note: string
}

/** @throws {LogError} if the format is not known */
export function readLog(
  text: string,
  { url, status, durationMs, body }: Pick<TrafficOptions, 'url' | 'status' | 'durationMs' | 'body'>,
): PastedLog {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  if (lines.length === 0) return { arrivals: [], note: 'Paste the lines of an access log.' }
  const { parser } = detect('The log', lines.slice(0, 200), 'auto', {
    map: new Map(),
    host: undefined,
  })
  const parsed = lines.map((line) => parser.parse(line))
  const requests = parsed
    .filter((one): one is LogLine => one !== undefined && !(one instanceof Rejection))
    .sort((one, other) => one.time - other.time)
  const host = new URL(url).host
  const arrivals = requests.slice(0, MAX_REQUESTS).map(
    (line): Arrival => ({
      at: line.time,
      ip: line.ip ?? '203.0.113.1',
      method: line.method,
      url: `https://${line.host ?? host}${line.target.startsWith('/') ? '' : '/'}${line.target}`,
      headers: {
        ...(line.userAgent && { 'user-agent': line.userAgent }),
        ...(line.referer && { referer: line.referer }),
        ...line.headers,
      },
      ...(line.country && { country: line.country }),
      ...(line.asn && { asn: Number(line.asn) }),
      ...(line.colo && { colo: line.colo }),
      // A request that was refused at the time would have got an answer like the others.
      status: line.status === undefined || line.status === 429 ? status : line.status,
      durationMs,
      ...(body && { body }),
    }),
  )
  const left = lines.length - requests.length
  return {
    arrivals,
    note: [
      `${parser.title}, ${requests.length} requests.`,
      ...(left > 0 ? [`${left} lines are not requests.`] : []),
      ...(requests.length > MAX_REQUESTS ? [`The first ${MAX_REQUESTS} are shown.`] : []),
    ].join(' '),
  }
}
