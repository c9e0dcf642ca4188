const HEADING = '## Unreleased'

/**
 * The changelog with the entries of "Unreleased" under a version. "Unreleased" stays, without entries.
 * @param date such as 2026-11-25
 * @throws Error if there is nothing to release
 */
export function releasedChangelog(text: string, version: string, date: string): string {
  const lines = text.split('\n')
  const start = lines.indexOf(HEADING)
  if (start < 0) throw new Error(`CHANGELOG.md has no heading "${HEADING}".`)
  const after = lines.slice(start + 1)
  const next = after.findIndex((line) => line.startsWith('## '))
  const section = next < 0 ? after : after.slice(0, next)
  if (!section.some((line) => /^[-*] \S/.test(line))) {
    throw new Error(
      `CHANGELOG.md has no entries under "${HEADING}". Describe what changed, and commit it.`,
    )
  }
  if (lines.some((line) => /^## \[?([^\]\s]+)/.exec(line)?.[1] === version)) {
    throw new Error(`CHANGELOG.md already has a section for ${version}.`)
  }
  return [...lines.slice(0, start + 1), '', `## ${version} - ${date}`, ...after].join('\n')
}
