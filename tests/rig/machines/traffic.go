package main

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// traffic is all pools' gateways.
type traffic struct {
	cloud *cloud
	pools []*pool
}

func openTraffic(k *cloud) (*traffic, error) {
	t := &traffic{cloud: k}
	for i, conf := range k.conf.Pools {
		p := &pool{conf: conf}
		if conf.Trace != nil {
			source, err := openTrace(conf.Trace, k.seed+uint64(i))
			if err != nil {
				return nil, err
			}
			p.sources = append(p.sources, source)
		}
		t.pools = append(t.pools, p)
	}
	t.skip(k.clock.seconds(time.Now()))
	return t, nil
}

// skip drops what came while the program was down.
func (t *traffic) skip(now float64) {
	for _, p := range t.pools {
		for arrival, from := p.arrival(); arrival != nil && arrival.arrived < now; arrival, from = p.arrival() {
			from.take()
		}
	}
}

func (t *traffic) advance(now float64) {
	for _, p := range t.pools {
		p.advance(now)
	}
}

// pool is that of a pod with these labels, or nil.
func (t *traffic) pool(namespace string, podLabels map[string]string) *pool {
	for _, p := range t.pools {
		if p.conf.Namespace == namespace && labels.SelectorFromSet(p.conf.Selector).Matches(labels.Set(podLabels)) {
			return p
		}
	}
	return nil
}

func (t *traffic) add(name string, s *synthetic) error {
	if err := s.check(); err != nil {
		return invalid("%v", err)
	}
	p, err := t.named(name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sources = append(p.sources, newStream(*s, p.now, t.cloud.seed+uint64(len(p.sources))))
	return nil
}

func (t *traffic) named(name string) (*pool, error) {
	for _, p := range t.pools {
		if p.conf.Name == name {
			return p, nil
		}
	}
	return nil, &refusedCall{404, "NotFound", fmt.Sprintf("there is no pool %s", name)}
}

// scores is what GET /v1/score says.
func (t *traffic) scores() any {
	now := time.Now()
	t.advance(t.cloud.clock.seconds(now))
	scores := map[string]score{}
	for _, p := range t.pools {
		scores[p.conf.Name] = p.result()
	}
	k := t.cloud
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range t.pools {
		s := scores[p.conf.Name]
		for _, name := range p.conf.Groups {
			g := k.group(name)
			billed := g.BilledMillis
			for _, m := range g.Machines {
				billed += m.billed(now.UnixMilli())
			}
			s.GPUSeconds += float64(billed) / 1000 * k.clock.speed * float64(g.conf.GPUs)
			s.Machines += g.awake()
			s.MaxMachines += g.Peak
		}
		scores[p.conf.Name] = s
	}
	return map[string]any{"simulated_s": k.clock.seconds(now), "pools": scores, "purchases": k.journal.Purchases}
}

func (f *front) addTraffic(w http.ResponseWriter, r *http.Request) {
	var s synthetic
	err := decode(r, &s)
	if err != nil {
		err = invalid("%v", err)
	} else {
		err = f.traffic.add(r.PathValue("pool"), &s)
	}
	if err != nil {
		answerError(w, err)
		return
	}
	answerJSON(w, 200, s)
}

func (f *front) endTraffic(w http.ResponseWriter, r *http.Request) {
	p, err := f.traffic.named(r.PathValue("pool"))
	if err != nil {
		answerError(w, err)
		return
	}
	p.endStreams()
	answerJSON(w, 200, struct{}{})
}
