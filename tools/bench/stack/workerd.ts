import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { afterDeath } from 'sluice-upstash-bridge'
import { compatibilityDate } from '../../build.ts'

/** The workerd binary of package.json. */
export const pinned: string = createRequire(import.meta.url)('workerd').default

/** One process of `workerd serve`, which is one isolate. */
export interface Isolate {
  port: number
  pid: number
  stop(): Promise<void>
}

let started = 0

/**
 * Runs a built Worker in workerd, without Miniflare.
 * @param outdir the folder into which `build` wrote the modules
 * @param bindings the variables of the Worker
 */
export async function startIsolate(
  outdir: string,
  bindings: Record<string, string>,
  binary: string,
): Promise<Isolate> {
  const file = join(outdir, `${process.pid}-${++started}.capnp`)
  await writeFile(file, config(await readdir(outdir), bindings))
  const child = spawn(binary, ['serve', file, '--control-fd=3'], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stderr!.setEncoding('utf8').on('data', (text) => {
    output = (output + text).slice(-4000)
  })
  const cancel = afterDeath('kill -9 "$1" 2>/dev/null', `${child.pid}`)
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    cancel()
    await rm(file, { force: true })
  }
  try {
    return { port: await portOf(child), pid: child.pid!, stop }
  } catch (cause) {
    await stop()
    throw new Error(`workerd did not start. Its output:\n${output}`, { cause })
  }
}

/** Waits until workerd listens, and returns its port. */
function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error('not ready after 20 s')), 20_000)
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`it ended with code ${code}`)))
    const control = child.stdio[3] as Readable
    let received = ''
    control.setEncoding('utf8').on('data', (text: string) => {
      received += text
      const port = /"event":"listen".*?"port":(\d+)/.exec(received)?.[1]
      if (!port) return
      clearTimeout(late)
      resolve(Number(port))
    })
  })
}

/** The Cap'n Proto configuration. JSON strings are valid Cap'n Proto text. */
function config(files: string[], bindings: Record<string, string>): string {
  const text = JSON.stringify
  const modules = files
    .filter((name) => /\.(js|lua)$/.test(name))
    // The entry comes first.
    .sort((a, b) => Number(b.endsWith('.js')) - Number(a.endsWith('.js')))
    .map((name) => {
      const kind = name.endsWith('.js') ? 'esModule' : 'text'
      return `(name = ${text(name)}, ${kind} = embed ${text(name)})`
    })
  const env = Object.entries(bindings).map(
    ([name, value]) => `(name = ${text(name)}, text = ${text(value)})`,
  )
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "worker", worker = .worker),
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);
const worker :Workerd.Worker = (
  modules = [${modules.join(', ')}],
  bindings = [${env.join(', ')}],
  compatibilityDate = ${text(compatibilityDate)},
);
`
}
