import type { Profile } from '../legs/profile.ts'
import { table } from './table.ts'

/** Minimum time per request in µs for a row in the table. */
const MIN_US = 1

export function profileText(profiles: Profile[]): string {
  const tables = profiles.map(({ of, workerUs, parts }) => {
    const lines = parts
      .filter(({ us }) => us >= MIN_US)
      .map(({ name, us }) => [name, us.toFixed(1)])
    const title = `${of}: ${workerUs.toFixed(0)} µs CPU for the whole process, measured without the profiler.`
    return `${title}\n\n${table(['source file, on the thread of the Worker', 'µs per request'], lines)}`
  })
  return [
    '### Where the time of a Worker goes',
    'A closed loop with 64 connections. V8 takes a sample every 200 µs, which itself takes time. Platform calls (a digest, a header, a fetch) count for the file that makes them.',
    ...tables,
  ].join('\n\n')
}
