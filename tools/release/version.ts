const PARTS = ['major', 'minor', 'patch']
const VERSION = /^(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}$/

/**
 * The version that a release gets.
 * @param current the version in package.json
 * @param wanted a part to increase (`patch`, `minor`, `major`), or a version that is not older than `current`
 * @throws Error if `wanted` is something else
 */
export function nextVersion(current: string, wanted: string): string {
  if (!VERSION.test(current)) {
    throw new Error(`package.json has the version ${JSON.stringify(current)}. Write it as 1.2.3.`)
  }
  const numbers = current.split('.').map(Number)
  const part = PARTS.indexOf(wanted)
  if (part >= 0) {
    return numbers.map((value, at) => (at < part ? value : at === part ? value + 1 : 0)).join('.')
  }
  if (!VERSION.test(wanted)) {
    throw new Error(
      `Unknown version ${JSON.stringify(wanted)}. Write patch, minor, major, or a version such as 1.2.3.`,
    )
  }
  const changed = wanted.split('.').map((value, at) => Number(value) - numbers[at]!)
  if (changed.find((difference) => difference !== 0)! < 0) {
    throw new Error(`The version ${wanted} is older than ${current}, the version in package.json.`)
  }
  return wanted
}

/** package.json, or the lock file of npm, with another version of the root package. */
export function withVersion(text: string, version: string): string {
  const manifest = JSON.parse(text)
  manifest.version = version
  const root = manifest.packages?.['']
  if (root) root.version = version
  return `${JSON.stringify(manifest, null, 2)}\n`
}
