import type { Description, Try } from './describe.ts'

/**
 * Formats rows as aligned, indented columns.
 * @param widest a longer cell moves the rest of its own row, and not the columns of all rows
 */
export function table(rows: string[][], widest = Number.POSITIVE_INFINITY): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]!.length).filter((length) => length <= widest)),
  )
  return rows
    .map((row) =>
      `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('   ')}`.trimEnd(),
    )
    .join('\n')
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** The options and the address of curl for a request. */
function optionsOf({ method, headers, body }: Try, address: string): string {
  const fields = headers.map((field) => ` -H ${quoted(field)}`).join('')
  const verb = method === 'GET' ? '' : method === 'HEAD' ? ' -I' : ` -X ${method}`
  return `${verb} ${address}${fields}${body ? ` -d ${quoted(JSON.stringify(body))}` : ''}`
}

const aboutOf = (text: string, { needs }: Try) =>
  needs.length > 0 ? `${text}; write ${needs.join(', and ')}` : text

function curlOf(request: Try, url: string): [string, string] {
  const address = url + request.path
  const isPlain = /^[\w:/.%~-]*$/.test(address)
  return [
    `curl -i${optionsOf(request, isPlain ? address : quoted(address))}`,
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
      `curl -s -o /dev/null -w '%{http_code} '${optionsOf(request, quoted(target))}`,
      aboutOf('sends requests until the limit refuses them with 429', request),
    ])
  }
  if (ask) {
    const call = (path: string, token: string, body: object) =>
      `curl ${url}/_sluice/v1/${path} -H "Authorization: Bearer ${token}" -d ${quoted(JSON.stringify(body))}`
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
