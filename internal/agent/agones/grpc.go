//go:build !quick

package agones

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/agent/agones/sdk"
)

func (p *Process) grpcServer() *grpc.Server {
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(messageMax), grpc.MaxHeaderListSize(headersMax), grpc.MaxConcurrentStreams(streamsMax), grpc.ConnectionTimeout(10*time.Second),
		grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10), // a host has many processes
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	services := map[string]*grpc.ServiceDesc{}
	for _, name := range []string{stable, beta, alpha} {
		services[name] = &grpc.ServiceDesc{ServiceName: name, HandlerType: (*any)(nil)}
	}
	for i := range methods {
		m := &methods[i]
		services[m.service].Methods = append(services[m.service].Methods, grpc.MethodDesc{
			MethodName: m.name,
			Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				in := m.request()
				if err := decode(in); err != nil {
					return nil, err
				}
				return p.call(m, in)
			},
		})
	}
	services[stable].Streams = []grpc.StreamDesc{
		{StreamName: "Health", ClientStreams: true, Handler: func(_ any, stream grpc.ServerStream) error { return p.health(stream) }},
		{StreamName: "WatchGameServer", ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			if err := stream.RecvMsg(new(sdk.Empty)); err != nil {
				return err
			}
			return p.watch(stream.Context(), func(gs *sdk.GameServer) error { return stream.SendMsg(gs) })
		}},
	}
	for _, s2 := range services {
		s.RegisterService(s2, p)
	}
	return s
}

// health reads health pings for as long as the game sends them.
func (p *Process) health(stream grpc.ServerStream) error {
	for {
		err := stream.RecvMsg(new(sdk.Empty))
		if errors.Is(err, io.EOF) {
			return stream.SendMsg(new(sdk.Empty))
		}
		if err != nil {
			return err
		}
		if err := p.sign(stream.Context()); err != nil {
			return status.FromContextError(err).Err()
		}
	}
}

func invalid(format string, args ...any) (proto.Message, error) {
	return nil, invalidError(format, args...)
}

func invalidError(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}
