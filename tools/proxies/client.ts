import { request } from 'node:http'

export interface Answer {
  status: number
  /** The reason phrase, unchanged. */
  statusText: string
  /** Names in lower case. */
  headers: Record<string, string | string[] | undefined>
  /** Alternating names and values, unchanged. */
  rawHeaders: string[]
  body: string
}

export interface Question {
  method?: string
  /** Header fields. The case of names is kept; several values become several fields. */
  headers?: Record<string, string | string[]>
  body?: string
  /** The request target. Defaults to the path of the URL. */
  target?: string
  /** The local address to send from. */
  from?: string
}

/** Sends one request on a new connection. Unlike `fetch` it can set any header field. */
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
