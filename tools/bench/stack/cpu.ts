import { readdir, readFile } from 'node:fs/promises'

/** A clock tick in /proc/<pid>/stat, which is 10 ms on every Linux. */
const TICK_MS = 10

/** CPU time of a process in ms; `undefined` on systems without /proc. */
export async function cpuOf(pid: number): Promise<number | undefined> {
  return (await exact(pid)) ?? (await ticks(pid))
}

/** CPU time of the living threads, in nanosecond resolution. The threads of workerd live as long as the process. */
async function exact(pid: number): Promise<number | undefined> {
  try {
    const threads = await readdir(`/proc/${pid}/task`)
    const texts = threads.map((id) => readFile(`/proc/${pid}/task/${id}/schedstat`, 'utf8'))
    const total = (await Promise.all(texts)).reduce(
      (sum, text) => sum + Number(text.split(' ')[0]),
      0,
    )
    return total > 0 ? total / 1e6 : undefined // kernels without schedstats report 0
  } catch {
    return undefined
  }
}

async function ticks(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The process name, in parentheses, may contain any character. utime and stime are fields 14 and 15.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields && (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
