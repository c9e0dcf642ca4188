import { readFile } from 'node:fs/promises'
import { parseEnv } from 'node:util'

/** The Worker's own variables. It gets these of the environment, and those that the configuration names; nothing else reaches it. */
const OWN = /^(SLUICE_|UPSTASH_REDIS_REST_|ORIGIN$)/

/** The variables in .dev.vars; none where there is no such file. */
export async function readDevVars(file: string): Promise<Record<string, string>> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return parseEnv(text) as Record<string, string>
}

/**
 * The variables that an environment has for the Worker.
 * @param named by the configuration
 */
export const variablesIn = (environment: NodeJS.ProcessEnv, named: string[] = []) =>
  Object.fromEntries(
    Object.entries(environment).filter(
      (entry): entry is [string, string] =>
        Boolean(entry[1]) && (OWN.test(entry[0]) || named.includes(entry[0])),
    ),
  )
