import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** The texts of files by their paths relative to a folder. */
export type Files = Record<string, string>

/** A text with the line ends of another. */
export const withEndsOf = (like: string, text: string): string =>
  like.includes('\r\n') ? text.replace(/\r?\n/g, '\r\n') : text

/**
 * The text of a file; `undefined` if it does not exist.
 * @throws Error with the path if it cannot be read
 */
export const textOf = (file: string): Promise<string | undefined> =>
  readFile(file, 'utf8').catch((error) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw new Error(`Nothing was written: ${file}: ${error.message}`, { cause: error })
  })

/**
 * Writes all files, or none: after an error it restores what it has written.
 * @throws Error with the path of the file
 */
export async function writeAll(folder: string, files: Files): Promise<void> {
  const undo: (() => Promise<unknown>)[] = []
  try {
    for (const [name, text] of Object.entries(files)) {
      const file = join(folder, name)
      const before = await textOf(file)
      const created = await mkdir(dirname(file), { recursive: true })
      if (created) undo.push(() => rm(created, { recursive: true, force: true }))
      undo.push(() => (before === undefined ? rm(file, { force: true }) : writeFile(file, before)))
      await writeFile(file, text)
    }
  } catch (error) {
    for (const step of undo.reverse()) await step().catch(() => {})
    throw new Error(`Nothing was written: ${(error as Error).message}`, { cause: error })
  }
}
