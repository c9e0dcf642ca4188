import { spawn } from 'node:child_process'

/** The scripts of this process, by their numbers. */
const scripts = new Map<number, string>()
let count = 0
let shell: ReturnType<typeof startShell> | undefined

/** Reads assignments until the pipe is closed, and then runs the scripts that are not empty. */
const PROGRAM = `while IFS= read -r line; do eval "$line"; done
while [ "$count" -gt 0 ]; do eval "eval \\"\\$script$count\\""; count=$((count - 1)); done`

/**
 * Runs a shell script, of one line, when this process ends, even by SIGKILL, to clean up after it. One shell waits for all scripts on a
 * pipe, which the kernel closes when this process ends: to start one for each script would stop a large process for tens of ms.
 * @returns a function that cancels this
 */
export function afterDeath(script: string, ...args: string[]): () => void {
  const number = ++count
  scripts.set(number, `set -- ${args.map(quoted).join(' ')}; ${script}`)
  shell ??= startShell()
  tell(number)
  return () => {
    scripts.delete(number)
    tell(number)
    if (scripts.size > 0) return
    shell?.kill('SIGKILL')
    shell = undefined
  }
}

function tell(number: number) {
  shell?.stdin.write(`script${number}=${quoted(scripts.get(number) ?? '')}; count=${count}\n`)
}

function startShell() {
  const started = spawn('sh', ['-c', PROGRAM], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  started.on('error', () => {})
  started.stdin.on('error', () => {})
  started.unref()
  return started
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
