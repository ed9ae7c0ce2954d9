package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"time"
)

// delay is a simulated duration: fixed ("40s") or log-normal through p50 and p95.
type delay struct {
	P50, P95 time.Duration
}

func (d *delay) UnmarshalJSON(text []byte) error {
	var fixed duration
	if err := json.Unmarshal(text, &fixed); err == nil || text[0] == '"' {
		d.P50, d.P95 = time.Duration(fixed), time.Duration(fixed)
		return err
	}
	var spread struct {
		P50 duration `json:"p50"`
		P95 duration `json:"p95"`
	}
	if err := strict(text, &spread); err != nil {
		return fmt.Errorf(`a delay is a duration ("40s") or {"p50": ..., "p95": ...}: %w`, err)
	}
	if spread.P50 <= 0 || spread.P95 < spread.P50 {
		return fmt.Errorf("a delay needs 0 < p50 <= p95, found p50 %v and p95 %v",
			time.Duration(spread.P50), time.Duration(spread.P95))
	}
	d.P50, d.P95 = time.Duration(spread.P50), time.Duration(spread.P95)
	return nil
}

// draw depends on seed and key only, so that the order of calls does not matter.
func (d delay) draw(seed uint64, key string) time.Duration {
	if d.P50 <= 0 || d.P95 <= d.P50 {
		return d.P50
	}
	const z95 = 1.6448536269514722
	sigma := math.Log(float64(d.P95)/float64(d.P50)) / z95
	normal := math.Sqrt2 * math.Erfinv(2*uniform(seed, key)-1)
	return time.Duration(float64(d.P50) * math.Exp(sigma*normal))
}

// uniform is in (0, 1), the same for the same seed and key.
func uniform(seed uint64, key string) float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s", seed, key)
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return (float64(x>>11) + 0.5) / (1 << 53)
}

// duration reads "90s", "1h30m" or a number of seconds.
type duration time.Duration

func (d *duration) UnmarshalJSON(text []byte) error {
	var seconds float64
	if err := json.Unmarshal(text, &seconds); err == nil {
		if seconds < 0 {
			return fmt.Errorf("a duration is not negative, found %v", seconds)
		}
		*d = duration(seconds * float64(time.Second))
		return nil
	}
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(word)
	if err != nil || parsed < 0 {
		return fmt.Errorf("%q is no duration; allowed are 0s and more, such as 90s, 1h30m", word)
	}
	*d = duration(parsed)
	return nil
}
