package main

import (
	"context"
	"time"
)

// clock maps simulated to real time: speed simulated seconds pass in a real one.
type clock struct {
	start time.Time // where simulated time is 0
	speed float64
}

// real is the real duration of a simulated one.
func (c clock) real(simulated time.Duration) time.Duration {
	return time.Duration(float64(simulated) / c.speed)
}

// millis is real in whole milliseconds.
func (c clock) millis(simulated time.Duration) int64 {
	return c.real(simulated).Milliseconds()
}

// seconds is the simulated time at a real moment, in seconds.
func (c clock) seconds(at time.Time) float64 {
	return at.Sub(c.start).Seconds() * c.speed
}

// sleep waits for a simulated duration; false if ctx ended first.
func (c clock) sleep(ctx context.Context, simulated time.Duration) bool {
	return sleepReal(ctx, c.real(simulated))
}

func sleepReal(ctx context.Context, real time.Duration) bool {
	if real <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(real)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
