package gamelift

import (
	"net/http"
	"strings"
)

const (
	targetPrefix = "GameLift."
	rpcPath      = "/service/GameLift/operation/"

	rpcProtocol = "rpc-v2-cbor"
)

// route finds the codec and the operation of a request. It allows a base path before the known part, which endpoint
// overrides have when Muster shares a host with others.
func route(r *http.Request) (c codec, operation string) {
	path := r.URL.Path
	if i := strings.LastIndex(path, rpcPath); i >= 0 {
		return cborCodec{}, path[i+len(rpcPath):]
	}
	if r.Header.Get("Smithy-Protocol") == rpcProtocol {
		return cborCodec{}, ""
	}
	operation, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), targetPrefix)
	if !ok {
		return jsonCodec{}, ""
	}
	return jsonCodec{}, operation
}
