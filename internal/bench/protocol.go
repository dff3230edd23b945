package bench

import (
	"encoding/binary"
	"strconv"
)

// protocol is a client's side of one of the API's two protocols.
type protocol struct {
	name string

	// The header of a request consists of these parts. It contains everything that an SDK of this protocol sends, because the
	// service has to read that, too.
	path, target  string // followed by the operation's name
	headers       string // after Host and target, up to the date
	signedHeaders string
	canonical     func(b []byte, c *conn, operation string, length int) []byte // the canonical headers

	appendMap    func(b []byte, members int) []byte
	appendMember func(b []byte, first bool, name string) []byte
	appendString func(b []byte, s string) []byte
	appendInt    func(b []byte, n int) []byte
	closeMap     string
}

// awsJSON is the older protocol, in the form of the AWS CLI.
var awsJSON = &protocol{
	name: "JSON 1.1", path: "/", target: "X-Amz-Target: GameLift.",
	headers:       "Accept-Encoding: identity\r\nContent-Type: application/x-amz-json-1.1\r\nUser-Agent: aws-cli/2.27.0 md/awscrt#0.25.4 ua/2.1 os/linux#6.1 md/arch#x86_64 lang/python#3.13.2\r\n",
	signedHeaders: "content-type;host;x-amz-date;x-amz-target",
	canonical: func(b []byte, c *conn, operation string, _ int) []byte {
		b = append(b, "content-type:application/x-amz-json-1.1\nhost:"...)
		b = append(b, c.host...)
		b = append(append(b, "\nx-amz-date:"...), c.signer.date...)
		return append(append(append(b, "\nx-amz-target:GameLift."...), operation...), '\n')
	},
	appendMap: func(b []byte, _ int) []byte { return append(b, '{') },
	appendMember: func(b []byte, first bool, name string) []byte {
		if !first {
			b = append(b, ',')
		}
		return append(append(append(b, '"'), name...), '"', ':')
	},
	// The strings of the load need no escapes.
	appendString: func(b []byte, s string) []byte { return append(append(append(b, '"'), s...), '"') },
	appendInt:    func(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) },
	closeMap:     "}",
}

const invocation = "6a0e4c0e-8a57-4d9a-8d1b-7f102b1e0c7a"

// rpcCBOR is the newer protocol, in the form of the AWS SDK for Go.
var rpcCBOR = &protocol{
	name: "CBOR", path: "/service/GameLift/operation/",
	headers: "Accept: application/cbor\r\nAccept-Encoding: identity\r\nAmz-Sdk-Invocation-Id: " + invocation + "\r\nAmz-Sdk-Request: attempt=1; max=3\r\n" +
		"Content-Type: application/cbor\r\nSmithy-Protocol: rpc-v2-cbor\r\nUser-Agent: aws-sdk-go-v2/1.41.0 ua/2.1 os/linux lang/go#1.26 md/GOOS#linux md/GOARCH#amd64 api/gamelift#1.50.0\r\n",
	signedHeaders: "accept;amz-sdk-invocation-id;amz-sdk-request;content-length;content-type;host;smithy-protocol;x-amz-date",
	canonical: func(b []byte, c *conn, _ string, length int) []byte {
		b = append(b, "accept:application/cbor\namz-sdk-invocation-id:"+invocation+"\namz-sdk-request:attempt=1; max=3\ncontent-length:"...)
		b = strconv.AppendInt(b, int64(length), 10)
		b = append(append(b, "\ncontent-type:application/cbor\nhost:"...), c.host...)
		b = append(b, "\nsmithy-protocol:rpc-v2-cbor\nx-amz-date:"...)
		return append(append(b, c.signer.date...), '\n')
	},
	appendMap:    func(b []byte, members int) []byte { return appendCBORHead(b, 5, members) },
	appendMember: func(b []byte, _ bool, name string) []byte { return append(appendCBORHead(b, 3, len(name)), name...) },
	appendString: func(b []byte, s string) []byte { return append(appendCBORHead(b, 3, len(s)), s...) },
	appendInt:    func(b []byte, n int) []byte { return appendCBORHead(b, 0, n) },
}

var protocols = []*protocol{awsJSON, rpcCBOR}

func appendCBORHead(b []byte, major byte, n int) []byte {
	switch {
	case n < 24:
		return append(b, major<<5|byte(n))
	case n < 1<<8:
		return append(b, major<<5|24, byte(n))
	default:
		return binary.BigEndian.AppendUint16(append(b, major<<5|25), uint16(n))
	}
}

// member is one member of a request: a text, or, without one, a number.
type member struct {
	name, text string
	number     int
}

func (p *protocol) appendBody(b []byte, members ...member) []byte {
	b = p.appendMap(b, len(members))
	for i := range members {
		m := &members[i]
		b = p.appendMember(b, i == 0, m.name)
		if m.text != "" {
			b = p.appendString(b, m.text)
		} else {
			b = p.appendInt(b, m.number)
		}
	}
	return append(b, p.closeMap...)
}
