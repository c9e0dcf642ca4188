import * as fs from 'node:fs/promises'
import { LogError } from './log.ts'

/** A log file that exists and can be read. */
export interface LogFile {
  path: string
  /** Absent for a pipe, which can be read once. */
  size?: number
}

/** The name of stdin on the command line. */
export const STDIN = '-'

/** Finds the files of paths and patterns, each once. A path that exists is no pattern. */
export async function findFiles(names: string[]): Promise<LogFile[]> {
  const files = new Map<string, LogFile>()
  for (const name of names) {
    for (const path of await pathsOf(name)) {
      const [size, real] = [await checkFile(path), await fs.realpath(path)]
      if (!files.has(real)) files.set(real, { path, ...(size !== undefined && { size }) })
    }
  }
  return [...files.values()]
}

async function pathsOf(name: string): Promise<string[]> {
  const exists = await fs.stat(name).then(
    () => true,
    (error) => error.code !== 'ENOENT' && error.code !== 'ENOTDIR',
  )
  if (exists) return [name]
  if (!/[*?[{]/.test(name)) throw new LogError('no-file', `There is no file ${name}.`)
  if (!('glob' in fs)) {
    throw new LogError(
      'no-file',
      `There is no file ${name}. Node ${process.versions.node} cannot expand patterns: write the pattern without quotes, so that the shell expands it.`,
    )
  }
  const paths: string[] = []
  for await (const path of fs.glob(name)) paths.push(path)
  if (paths.length === 0) throw new LogError('no-file', `No file matches ${name}.`)
  return paths.sort()
}

/** Returns the size of a file, or `undefined` for a pipe, after a check that it can be read. */
async function checkFile(path: string): Promise<number | undefined> {
  try {
    const stats = await fs.stat(path)
    if (stats.isDirectory()) {
      throw new LogError('folder', `${path} is a folder. Name its files: ${path}/*.log`)
    }
    await fs.access(path, fs.constants.R_OK)
    return stats.isFile() ? stats.size : undefined
  } catch (error) {
    throw asLogError(path, error)
  }
}

/** Converts an error of reading or decompressing a file. */
export function asLogError(name: string, error: unknown): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException
  if (error instanceof LogError) return error
  if (code === 'EACCES' || code === 'EPERM') {
    return new LogError('no-permission', `The permissions of ${name} do not allow reading it.`)
  }
  if (code === 'Z_BUF_ERROR' || message === 'unexpected end of file') {
    return new LogError(
      'damaged',
      `${name} is incomplete: its compressed data ends too early. Copy it again, or replay the part that is there: zcat ${name} | npx sluice replay -`,
    )
  }
  if (/^Z(STD)?_/.test(code)) {
    return new LogError('damaged', `${name} is damaged: its compressed data is invalid (${code}).`)
  }
  return new LogError('unreadable', `${name} cannot be read: ${message}`)
}

/** True if stdin is one of the logs. */
export const isStdin = (names: string[]) => names.length === 0 || names.includes(STDIN)
