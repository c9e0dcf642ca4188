import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'

/** The bindings in wrangler.toml. */
export interface WranglerBindings {
  vars: Record<string, unknown>
  kv: { binding: string; id?: string }[]
  ratelimits: { name: string; simple: { limit: number; period: 10 | 60 } }[]
}

/**
 * Reads the bindings of a wrangler.toml with wrangler. Returns none if the file does not exist.
 * @throws Error with the line and column of a syntax error
 */
export async function readBindings(file: string): Promise<WranglerBindings> {
  const text = await readFile(file, 'utf8').catch(() => '')
  // Importing wrangler takes seconds, so import it only if the file has bindings.
  if (!/^[^#\n]*\b(vars|kv_namespaces|ratelimits)\b/m.test(text)) {
    return { vars: {}, kv: [], ratelimits: [] }
  }
  const { unstable_readConfig: readConfig } = await import('wrangler')
  const config = placed(basename(file), () => readConfig({ config: file }, { hideWarnings: true }))
  return {
    vars: config.vars,
    kv: config.kv_namespaces as WranglerBindings['kv'],
    ratelimits: config.ratelimits as WranglerBindings['ratelimits'],
  }
}

/** Adds the file, line and column to the errors of wrangler. */
function placed<T>(file: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const { message, location } = error as Error & { location?: { line: number; column: number } }
    const place = location ? `:${location.line}:${location.column + 1}` : ''
    throw new Error(`${file}${place}: ${message.split('\n')[0]}`, { cause: error })
  }
}
