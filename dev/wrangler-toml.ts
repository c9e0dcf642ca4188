import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'

/** What wrangler.toml gives the Worker beside its code. */
export interface WranglerBindings {
  vars: Record<string, unknown>
  kv: { binding: string; id?: string }[]
  ratelimits: { name: string; simple: { limit: number; period: 10 | 60 } }[]
}

/**
 * Reads the bindings of a wrangler.toml, as wrangler does; none where there is no such file.
 * @throws with the place of a syntax error
 */
export async function readBindings(file: string): Promise<WranglerBindings> {
  const text = await readFile(file, 'utf8').catch(() => '')
  // Importing wrangler takes seconds: only where there is something to read.
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

/** Adds the file and the place to what wrangler throws. */
function placed<T>(file: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const { message, location } = error as Error & { location?: { line: number; column: number } }
    const place = location ? `:${location.line}:${location.column + 1}` : ''
    throw new Error(`${file}${place}: ${message.split('\n')[0]}`, { cause: error })
  }
}
