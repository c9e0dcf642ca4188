/** One bare GET over Upstash's REST API: what every limiter that asks Redis has to pay. */
export default {
  async fetch(request: Request, env: Record<'url' | 'token', string>) {
    const response = await fetch(env.url, {
      method: 'POST',
      headers: { Authorization: `Bearer ${env.token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(['GET', `bare:${request.headers.get('cf-connecting-ip')}`]),
    })
    const { result } = (await response.json()) as { result: unknown }
    return new Response(result === null ? 'ok' : 'there')
  },
}
