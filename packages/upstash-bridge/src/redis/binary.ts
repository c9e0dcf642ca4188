import { ask, type Binary } from '../binary.ts'

/** `redis-server 7.0.15`, as the binary itself says. Throws when it is no server or does not run. */
export function versionOf(binary: Binary): string {
  const text = ask(binary, '--version')
  const said = /^(Redis|Valkey) server v=(\S+)/im.exec(text)
  if (!said) throw new Error(`it says "${text.trim().slice(0, 200)}"`)
  return `${said[1]?.toLowerCase()}-server ${said[2]}`
}
