import { readFile } from 'node:fs/promises'
import { parseEnv } from 'node:util'

/** The variables of Sluice. The Worker gets these from the environment, and those that the configuration names, but no others. */
const OWN = /^(SLUICE_|UPSTASH_REDIS_REST_|ORIGIN$)/

/** The variables in .dev.vars; none if the file does not exist. */
export async function readDevVars(file: string): Promise<Record<string, string>> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return parseEnv(text) as Record<string, string>
}

/**
 * The variables of an environment that are for the Worker.
 * @param named the variables that the configuration names
 */
export const variablesIn = (environment: NodeJS.ProcessEnv, named: string[] = []) =>
  Object.fromEntries(
    Object.entries(environment).filter(
      (entry): entry is [string, string] =>
        Boolean(entry[1]) && (OWN.test(entry[0]) || named.includes(entry[0])),
    ),
  )
