import type { Sink } from './report.ts'

/** A line has the clients with the most refusals only, because the log bounds the length of lines. */
const MAX_OFFENDERS = 10

/** Writes the counts as one line of JSON. */
export const logSink: Sink = {
  name: 'log',
  send({ offenders, ...counts }) {
    const top = offenders.slice(0, MAX_OFFENDERS)
    console.log(JSON.stringify({ event: 'decisions', ...counts, offenders: top }))
  },
}
