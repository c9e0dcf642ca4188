import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'

/** The resident memory in bytes of the workerd that this process has started. Linux only. */
export async function residentBytes(): Promise<number> {
  const children = execFileSync('ps', ['-o', 'pid=,comm=', '--ppid', String(process.pid)], {
    encoding: 'utf8',
  })
  const pid = /(\d+) workerd/.exec(children)![1]
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024
}
