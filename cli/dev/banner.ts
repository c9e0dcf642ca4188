import type { Description, Try } from './describe.ts'

/** The width of a terminal that no address and no command has to be wrapped in. */
const WIDTH = 80

/** Formats rows as aligned, indented columns. */
export function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]!.length)),
  )
  return rows
    .map((row) =>
      `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('   ')}`.trimEnd(),
    )
    .join('\n')
}

/** The parts that run: name, address, and what it is. An address is alone on its line, so that a terminal can open or copy it as a whole. */
export const addresses = (parts: string[][]): string =>
  parts.map(([name, address, about]) => `  ${name}: ${about}\n    ${address}`).join('\n')

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A command in lines that fit. Its parts stay whole. */
function folded(parts: string[]): string {
  const line = parts.join(' ')
  return line.length + 2 <= WIDTH ? line : parts.join(' \\\n    ')
}

/** A command of curl for a request. */
function curl(first: string, { method, headers, body }: Try, address: string): string {
  const verb = method === 'GET' ? '' : method === 'HEAD' ? '-I ' : `-X ${method} `
  return folded([
    `curl ${first} ${verb}${address}`,
    ...headers.map((field) => `-H ${quoted(field)}`),
    ...(body ? [`-d ${quoted(JSON.stringify(body))}`] : []),
  ])
}

const aboutOf = (text: string, { needs }: Try) =>
  needs.length > 0 ? `${text}; write ${needs.join(', and ')}` : text

function curlOf(request: Try, url: string): [string, string] {
  const address = url + request.path
  const isPlain = /^[\w:/.%~-]*$/.test(address)
  return [
    curl('-i', request, isPlain ? address : quoted(address)),
    aboutOf(request.policy, request),
  ]
}

/** curl commands for the policies of the configuration, each with a comment. */
export function tries(
  { tries, flood, ask }: Description,
  url: string,
  tokens: { api: string; operate: string },
): string {
  const commands = tries.map((one) => curlOf(one, url))
  if (flood) {
    const { request, count } = flood
    const target = `${url}${request.path}${request.path.includes('?') ? '&' : '?'}[1-${count}]`
    commands.push([
      curl("-s -o /dev/null -w '%{http_code} '", request, quoted(target)),
      aboutOf('sends requests until the limit refuses them with 429', request),
    ])
  }
  if (ask) {
    const call = (path: string, token: string, body: object) =>
      folded([
        `curl ${url}/_sluice/v1/${path}`,
        `-H "Authorization: Bearer ${token}"`,
        `-d ${quoted(JSON.stringify(body))}`,
      ])
    commands.push(
      [call('decide', tokens.api, ask), 'asks the decision API for a decision'],
      [
        call(`policies/${ask.policy}/peek`, tokens.operate, { key: ask.key }),
        'peeks at the limits of a key, with the token of an operator',
      ],
    )
  }
  if (commands.length === 0) return `  curl -i ${url}/`
  const distinct = [...new Set(commands.map(([command]) => command))].map((command) => {
    const about = commands.filter(([other]) => other === command).map(([, text]) => text)
    return `  # ${about.join(', ')}\n  ${command}`
  })
  return distinct.join('\n')
}
