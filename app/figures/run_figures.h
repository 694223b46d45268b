// Figures of a study: pure functions from measurements to figures.
#pragma once

#include <optional>
#include <string_view>

#include "app/figures/figure.h"
#include "app/figures/study.h"

namespace stepladder {

// Tokens and time are summed over the steps; runs without them are excluded, and the caption names them.
enum class XAxis { step, tokens, time };

enum class FigureKind { ladder, loss, throughput, step_time, dt, loss_difference };
std::optional<FigureKind> figure_kind(std::string_view name);  // "loss-difference"
std::string_view to_string(FigureKind kind);
std::vector<std::string> figure_names();

Figure make_figure(FigureKind kind, const Study& study, XAxis x = XAxis::step);

// The colours of a rung's loss verdict and of its plausibility.
CellTone loss_tone(const StudyRung& rung);
CellTone trust_tone(const StudyRung& rung);

Figure ladder_figure(const Study& study);                    // throughput per rung with 95 % intervals
Figure loss_figure(const Study& study, XAxis x);             // validation losses are dots
Figure throughput_figure(const Study& study, XAxis x);       // of each step
Figure step_time_figure(const Study& study, XAxis x);        // of each step
Figure ecdf_figure(const Study& study);                      // of the steady steps' dt
Figure loss_difference_figure(const Study& study, XAxis x);  // at equal steps, with the band that is "same"

}  // namespace stepladder
