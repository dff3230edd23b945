package service

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/s3"
)

// bucketWait bounds the first request to the object store, which only serves to find mistakes in the settings.
const bucketWait = time.Minute

// openBucket prepares the object store that the settings name. The service also starts if the store is down, because
// games do not need it.
func (x *Service) openBucket() (err error) {
	if x.settings.Objects == "" {
		return nil
	}
	place, err := s3.Parse(x.settings.Objects)
	if err != nil {
		return err
	}
	if x.bucket, err = s3.Open(x.running, place); err != nil {
		return err
	}
	x.sweeping.Go(func() {
		checking, cancel := context.WithTimeout(x.running, bucketWait)
		defer cancel()
		switch err := x.bucket.Check(checking); {
		case err == nil:
			x.log.Info("builds and logs of game sessions are kept in an object store", "place", place.String(), "endpoint", x.bucket.Place().Endpoint)
		case x.running.Err() == nil:
			x.log.Error("object store cannot be used: uploads of builds and logs fail until it can", "place", place.String(), "endpoint", x.bucket.Place().Endpoint, "error", err)
		}
	})
	return nil
}

// decides reports whether this node is the only one or the leader of its cluster, which sweeps the stores that all
// nodes share.
func (x *Service) decides(ctx context.Context) bool { return x.engine.Decides(ctx) == nil }
