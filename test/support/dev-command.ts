import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the repository. */
export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Makes a temporary folder for configurations. `write` creates a file in it and returns its path. */
export async function configFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-configs-'))
  return {
    folder,
    async write(name: string, text: string): Promise<string> {
      const file = join(folder, `${name}.mts`)
      await writeFile(file, text)
      return file
    },
    remove: () => rm(folder, { recursive: true }),
  }
}

export type ConfigFolder = Awaited<ReturnType<typeof configFolder>>

/** Runs a command in the repository until it exits. */
export async function run(command: string, args: string[], env: Record<string, string> = {}) {
  const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env } })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk) => (stdout += chunk))
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const code = await new Promise((resolve) => child.once('close', resolve))
  return { code, stdout, stderr }
}

/** Runs `dev/explain.ts` with these arguments. */
export const explain = (args: string[], env?: Record<string, string>) =>
  run(process.execPath, ['dev/explain.ts', ...args], env)
