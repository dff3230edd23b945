//go:build !quick

package agones

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/musterhq/muster/internal/agent/agones/sdk"
)

// JSON as Agones' gateway writes it: all members, with the names in the schema.
var (
	toJSON   = protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}
	fromJSON = protojson.UnmarshalOptions{DiscardUnknown: true}
)

const writeTime = 10 * time.Second // for one answer, or one message of a watch

func (p *Process) httpServer(ctx context.Context) *http.Server {
	return &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: headersMax,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

func (p *Process) handler() http.Handler {
	mux := http.NewServeMux()
	actions := map[string]map[string]*method{} // by pattern and what follows the name after a colon
	for i := range methods {
		m := &methods[i]
		path, action := m.path, ""
		if before, after, ok := strings.Cut(path, "}:"); ok {
			path, action = before+"}", after
		}
		pattern := m.verb + " " + path
		if actions[pattern] == nil {
			actions[pattern] = map[string]*method{}
			mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
				name, action := r.PathValue("name"), ""
				m := actions[pattern][""]
				if m == nil { // the part after the last colon is the action
					if at := strings.LastIndexByte(name, ':'); at >= 0 {
						name, action = name[:at], name[at+1:]
					}
					if m = actions[pattern][action]; m == nil {
						fail(w, status.Errorf(codes.NotFound, "%.100q: no such action", action))
						return
					}
				}
				p.serve(w, r, m, name)
			})
		}
		actions[pattern][action] = m
	}
	mux.HandleFunc("POST /health", func(w http.ResponseWriter, r *http.Request) {
		var sign struct{}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, messageMax)).Decode(&sign); err != nil {
			fail(w, status.Errorf(codes.InvalidArgument, "body: %v; want {}", err))
			return
		}
		if p.sign(r.Context()) == nil {
			answer(w, new(sdk.Empty))
		}
	})
	mux.HandleFunc("GET /watch/gameserver", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		control := http.NewResponseController(w)
		err := p.watch(r.Context(), func(gs *sdk.GameServer) error {
			text, err := toJSON.Marshal(gs)
			if err != nil {
				return err
			}
			return errors.Join(control.SetWriteDeadline(time.Now().Add(writeTime)), write(w, `{"result":`, string(text), "}\n"), control.Flush())
		})
		if s, ok := status.FromError(err); ok && err != nil {
			fail(w, s.Err()) // nothing was sent
		}
	})
	return mux
}

func write(w io.Writer, parts ...string) error {
	_, err := io.WriteString(w, strings.Join(parts, ""))
	return err
}

func (p *Process) serve(w http.ResponseWriter, r *http.Request, m *method, name string) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	in := m.request()
	body, named := m.inREST(in)
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, messageMax))
	if err == nil && len(text) > 0 {
		err = fromJSON.Unmarshal(text, body)
	}
	if err != nil {
		fail(w, status.Errorf(codes.InvalidArgument, "body: %v", err))
		return
	}
	if named != nil {
		*named = name
	}
	if in, ok := in.(*sdk.UpdateListRequest); ok {
		in.UpdateMask = mask(r, text)
	}
	out, err := p.call(m, in)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, out)
}

// mask returns the fields that an update is about: those in the query or, without them, those in the body.
func mask(r *http.Request, body []byte) *fieldmaskpb.FieldMask {
	if paths := r.URL.Query().Get("update_mask"); paths != "" {
		return &fieldmaskpb.FieldMask{Paths: strings.Split(paths, ",")}
	}
	var members map[string]json.RawMessage
	json.Unmarshal(body, &members) // it was an object, or empty
	mask := new(fieldmaskpb.FieldMask)
	for name := range members {
		if name != "name" {
			mask.Paths = append(mask.Paths, name)
		}
	}
	slices.Sort(mask.Paths)
	return mask
}

func answer(w http.ResponseWriter, m proto.Message) {
	text, err := toJSON.Marshal(m)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// statuses are the HTTP statuses of gRPC codes in Agones' gateway.
var statuses = map[codes.Code]int{
	codes.InvalidArgument: 400, codes.FailedPrecondition: 400, codes.OutOfRange: 400, codes.NotFound: 404, codes.AlreadyExists: 409, codes.ResourceExhausted: 429,
}

func fail(w http.ResponseWriter, err error) {
	s := status.Convert(err)
	code, ok := statuses[s.Code()]
	if !ok {
		code = http.StatusInternalServerError
	}
	text, _ := json.Marshal(map[string]any{"code": int(s.Code()), "message": s.Message(), "details": []any{}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(text)
}
