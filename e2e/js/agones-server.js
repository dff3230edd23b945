#!/usr/bin/env node
// A game server as studios write them for Agones, with its SDK for Node.js. The tests drive it over HTTP on the game's port:
// {"api": "alpha", "call": "playerConnect", "args": ["Ann"]} calls the SDK, and GET returns what the server has seen.
import http from 'node:http'
import AgonesSDK from '@google-cloud/agones-sdk'

const sdk = new AgonesSDK()
const apis = { sdk, alpha: sdk.alpha, beta: sdk.beta }
const seen = { pid: process.pid, environment: {}, watched: [], gameServer: null }
for (const name of ['AGONES_SDK_GRPC_PORT', 'AGONES_SDK_HTTP_PORT', 'MUSTER_PORT_AGONES/GRPC']) seen.environment[name] = process.env[name]

const watch = () => sdk.watchGameServer(gameServer => {
  if (seen.watched.at(-1) !== gameServer.status.state) seen.watched.push(gameServer.status.state)
  seen.gameServer = gameServer
}, () => setTimeout(watch, 100))

// SIGTERM may be here before the watch says why.
process.on('SIGTERM', () => setInterval(() => {
  if (seen.watched.at(-1) !== 'Shutdown') return
  console.log('SIGTERM, and watched ' + seen.watched.join(' '))
  process.exit(0)
}, 20))

let well = true
setInterval(() => well && sdk.health(() => {}), 250)

http.createServer((request, response) => {
  let body = ''
  request.on('data', part => { body += part })
  request.on('end', async () => {
    const answer = { seen }
    if (request.method === 'POST') {
      const { api, call, args } = JSON.parse(body)
      if (call === 'beUnwell') well = false
      else try {
        answer.result = await apis[api][call](...args)
      } catch (error) {
        answer.error = error.code ?? error.stack
      }
    }
    response.end(JSON.stringify(answer))
  })
}).listen(Number(process.argv[2]), '127.0.0.1', async () => {
  await sdk.connect()
  watch()
  await sdk.ready()
})
