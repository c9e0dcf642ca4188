/** Makes one GET over Upstash's REST API: the minimum cost of a limiter with Redis. */
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
