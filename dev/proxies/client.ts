import { request } from 'node:http'

export interface Answer {
  status: number
  /** As it came. */
  statusText: string
  /** Names in lower case. */
  headers: Record<string, string | string[] | undefined>
  /** Names and values by turns, as they came. */
  rawHeaders: string[]
  body: string
}

export interface Question {
  method?: string
  /** Names as they are to be sent; several values as several fields. */
  headers?: Record<string, string | string[]>
  body?: string
  /** The target of the request, where it is not what the URL says. */
  target?: string
  /** The address it comes from. */
  from?: string
}

/** One request on a connection of its own, header fields that `fetch` reserves for itself included. */
export function ask(url: string, question: Question = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body, target, from } = question
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const sent = request(url, {
    method,
    headers,
    agent: false,
    ...(target && { path: target }),
    ...(from && { localAddress: from }),
  })
  sent.on('error', reject)
  sent.on('response', (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => {
      text += chunk
    })
    response.on('error', reject)
    response.on('end', () =>
      resolve({
        status: response.statusCode!,
        statusText: response.statusMessage!,
        headers: response.headers,
        rawHeaders: response.rawHeaders,
        body: text,
      }),
    )
  })
  sent.end(body)
  return promise
}
