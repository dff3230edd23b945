//go:build !quick

package agones

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/agent/agones/sdk"
)

func (p *Process) getCounter(in *sdk.GetCounterRequest) (proto.Message, error) {
	m, _ := p.look()
	c, ok := m.Counters[in.Name]
	if !ok {
		return nil, unknown("counter", in.Name)
	}
	return &sdk.Counter{Name: in.Name, Count: c.Count, Capacity: c.Capacity}, nil
}

func (p *Process) updateCounter(in *sdk.UpdateCounterRequest) (proto.Message, error) {
	u := in.CounterUpdateRequest
	if u == nil || u.Count == nil && u.Capacity == nil && u.CountDiff == 0 {
		return invalid("counterUpdateRequest: no count, capacity or countDiff; want one of them")
	}
	out := &sdk.Counter{Name: u.Name}
	err := p.change(func(m *Memory) error {
		c, ok := m.Counters[u.Name]
		if !ok {
			return unknown("counter", u.Name)
		}
		if u.Capacity != nil {
			if c.Capacity = u.Capacity.Value; c.Capacity < 0 {
				return status.Errorf(codes.OutOfRange, "capacity: %d; want 0 or more", c.Capacity)
			}
			c.Count = min(c.Count, c.Capacity)
		}
		if u.Count != nil {
			c.Count = u.Count.Value
		}
		if d := u.CountDiff; d > 0 && d > c.Capacity-c.Count || d < 0 && d < -c.Count {
			return status.Errorf(codes.OutOfRange, "countDiff: %d from %d; want a count from 0 to %d", d, c.Count, c.Capacity)
		}
		c.Count += u.CountDiff
		if c.Count < 0 || c.Count > c.Capacity {
			return status.Errorf(codes.OutOfRange, "count: %d; want 0 to %d", c.Count, c.Capacity)
		}
		m.Counters[u.Name] = c
		out.Count, out.Capacity = c.Count, c.Capacity
		return nil
	})
	return made(out, err)
}

func (p *Process) getList(in *sdk.GetListRequest) (proto.Message, error) {
	m, _ := p.look()
	l, ok := m.Lists[in.Name]
	if !ok {
		return nil, unknown("list", in.Name)
	}
	return l.message(in.Name), nil
}

// updateList changes the capacity, and the values if they are in the mask. SDKs that set a capacity send no mask.
func (p *Process) updateList(in *sdk.UpdateListRequest) (proto.Message, error) {
	if in.List == nil {
		return invalid("list: missing")
	}
	paths := in.UpdateMask.GetPaths()
	for _, path := range paths {
		if path != "capacity" && path != "values" {
			return invalid("update_mask: %.100q; want capacity or values", path)
		}
	}
	return p.changeList(in.List.Name, func(l *List) error {
		if len(paths) == 0 || slices.Contains(paths, "capacity") {
			if l.Capacity = in.List.Capacity; l.Capacity < 0 || l.Capacity > listMax {
				return status.Errorf(codes.OutOfRange, "capacity: %d; want 0 to %d", l.Capacity, listMax)
			}
			l.Values = l.Values[:min(len(l.Values), int(l.Capacity))]
		}
		if !slices.Contains(paths, "values") {
			return nil
		}
		values := slices.Clone(in.List.Values)
		slices.Sort(values)
		if len(slices.Compact(values)) != len(in.List.Values) {
			return invalidError("values: one is given twice; want each once")
		}
		if int64(len(in.List.Values)) > l.Capacity {
			return status.Errorf(codes.OutOfRange, "values: %d; want at most %d, the capacity", len(in.List.Values), l.Capacity)
		}
		for _, value := range in.List.Values {
			if len(value) > valueMax {
				return tooLong(value)
			}
		}
		l.Values = slices.Clone(in.List.Values)
		return nil
	})
}

func (p *Process) addListValue(in *sdk.AddListValueRequest) (proto.Message, error) {
	return p.changeList(in.Name, func(l *List) error {
		switch {
		case len(in.Value) > valueMax:
			return tooLong(in.Value)
		case slices.Contains(l.Values, in.Value):
			return status.Errorf(codes.AlreadyExists, "value: %.100q is in the list already", in.Value)
		case int64(len(l.Values)) >= l.Capacity:
			return status.Errorf(codes.OutOfRange, "value: the list has %d, its capacity", len(l.Values))
		}
		l.Values = append(slices.Clone(l.Values), in.Value)
		return nil
	})
}

func (p *Process) removeListValue(in *sdk.RemoveListValueRequest) (proto.Message, error) {
	return p.changeList(in.Name, func(l *List) error {
		at := slices.Index(l.Values, in.Value)
		if at < 0 {
			return status.Errorf(codes.NotFound, "value: %.100q is not in the list", in.Value)
		}
		l.Values = slices.Delete(slices.Clone(l.Values), at, at+1)
		return nil
	})
}

// changeList lets f change a copy of a list. f must replace the values instead of modifying them, because watches read
// them concurrently.
func (p *Process) changeList(name string, f func(l *List) error) (proto.Message, error) {
	var out *sdk.List
	err := p.change(func(m *Memory) error {
		l, ok := m.Lists[name]
		if !ok {
			return unknown("list", name)
		}
		before := bytesOf(l.Values)
		if err := f(&l); err != nil {
			return err
		}
		if more := bytesOf(l.Values) - before; more > 0 {
			if err := m.room(more); err != nil {
				return err
			}
		}
		m.Lists[name] = l
		out = l.message(name)
		return nil
	})
	return made(out, err)
}

func (l *List) message(name string) *sdk.List {
	return &sdk.List{Name: name, Capacity: l.Capacity, Values: l.Values}
}

func bytesOf(values []string) (n int) {
	for _, value := range values {
		n += len(value)
	}
	return n
}

func unknown(what, name string) error {
	return status.Errorf(codes.NotFound, "name: no %s %.100q; want one of the manifest that --agones-gameserver names", what, name)
}

func tooLong(value string) error {
	return invalidError("value: %d bytes; want at most %d", len(value), valueMax)
}

func made[T proto.Message](out T, err error) (proto.Message, error) {
	if err != nil {
		return nil, err
	}
	return out, nil
}
