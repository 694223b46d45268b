// The results of the calculator: every convention's figures, and the arithmetic of the chosen one. UI thread.
#pragma once

#include "app/desktop/widgets.h"
#include "app/panels/mfu/calculator.h"

namespace stepladder {

std::string percent(double share);
Tone tone_of_share(double share);  // suspicious, impossible

// `published_range` is the range of published runs by this convention. A click on another convention chooses it.
void draw_answer(const MfuForm& form, MfuConvention& convention, const std::string& published_range,
                 const HardwareTable& table);

}  // namespace stepladder
