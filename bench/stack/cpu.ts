import { readdir, readFile } from 'node:fs/promises'

/** Clock ticks of /proc/<pid>/stat are hundredths of a second on every Linux there is. */
const TICK_MS = 10

/** Milliseconds that a process has used of the processors; `undefined` where there is no /proc. */
export async function cpuOf(pid: number): Promise<number | undefined> {
  return (await exact(pid)) ?? (await ticks(pid))
}

/** To the nanosecond, of the threads that live; workerd's do as long as it does. */
async function exact(pid: number): Promise<number | undefined> {
  try {
    const threads = await readdir(`/proc/${pid}/task`)
    const texts = threads.map((id) => readFile(`/proc/${pid}/task/${id}/schedstat`, 'utf8'))
    const total = (await Promise.all(texts)).reduce(
      (sum, text) => sum + Number(text.split(' ')[0]),
      0,
    )
    return total > 0 ? total / 1e6 : undefined // kernels without schedstats say 0
  } catch {
    return undefined
  }
}

async function ticks(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The name, in parentheses, may hold anything; utime and stime are the 14th and 15th field.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields && (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
