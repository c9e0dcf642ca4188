import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Packed {
  /** The path of the tarball. */
  file: string
  /** A new folder that contains only the tarball. The caller removes it. */
  folder: string
  /** The paths of the packed files, sorted. */
  paths: string[]
}

/** Packs the files in dist as `npm publish` would. Does not build. */
export async function pack(): Promise<Packed> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-pack-'))
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const { stdout } = await promisify(execFile)('npm', args, { cwd: root })
  const report: unknown = JSON.parse(stdout)
  // npm 11 prints a list, npm 12 an object.
  const [packed] = Object.values(
    report as Record<string, { filename: string; files: { path: string }[] }>,
  )
  return {
    file: join(folder, packed!.filename),
    folder,
    paths: packed!.files.map(({ path }) => path).sort(),
  }
}

/** Builds dist. */
export const build = () => promisify(execFile)('npm', ['run', 'build'], { cwd: root })
