import type { Profile } from '../legs/profile.ts'
import { table } from './table.ts'

/** Less than this a request is not worth a line, µs. */
const WORTH = 1

export function profileText(profiles: Profile[]): string {
  const tables = profiles.map(({ of, workerUs, parts }) => {
    const lines = parts.filter(({ us }) => us >= WORTH).map(({ name, us }) => [name, us.toFixed(1)])
    const title = `Of ${of}: ${workerUs.toFixed(0)} µs of the process, unprofiled, all its threads.`
    return `${title}\n\n${table(['on the thread that runs the Worker', 'µs'], lines)}`
  })
  return [
    '### Where the time of a Worker goes',
    '64 connections without a pause; V8 looks every 200 µs, which by itself costs something. What a file asks of the platform (a digest, a header, a fetch) counts as its own.',
    ...tables,
  ].join('\n\n')
}
